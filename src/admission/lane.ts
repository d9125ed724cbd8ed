import { assert } from '../assert.ts'
import { Heap, type HeapItem } from '../heap.ts'
import type { DeliveryKey } from '../kernel/delivery.ts'
import type { Partition } from '../kernel/partitions.ts'
import type { Resource } from '../kernel/resource.ts'
import { List } from '../list.ts'
import type { Route } from '../program/route.ts'
import { type Lease, PermitLease } from './lease.ts'
import type { Keyed } from './needs.ts'
import { Waiter } from './waiter.ts'

/**
 * Waiters of one route and the same partitions, in arrival order: they all need the same, so only the first can be
 * next, and they all have the same delay, so the first expires first. It stands in the queue while it has a waiter; one
 * without partitions stays with its route for the next.
 */
export class Lane implements HeapItem {
  readonly route: Route
  /** Tells lanes of the same route apart: their partition keys. */
  readonly id: string
  readonly isKeyed: boolean
  readonly partitions: readonly Partition[] | null
  readonly place: DeliveryKey | null
  readonly delayMs: number // how long each of its calls may wait
  readonly waiters: List<Waiter>
  /**
   * A waiter that never waits and a lease of nothing, for as long as the route. V8 forgets the shape of an object with the
   * last of its kind, and with it the code compiled for it: each full collection while nobody waits would cost that
   * (`queue.release`).
   */
  readonly shapes: readonly [Waiter, Lease] | null
  /** One for each resource that its calls need, in judging order. */
  readonly spots: readonly Spot[]
  readonly lines: readonly Line[] // of the spots
  /** The spot whose line it stands in: a resource that lacked room when last asked. */
  parkedAt: Spot
  /** Has it one spot? Then it stands wherever it could be passed, and {@link passable} is of no interest. */
  readonly isEverywhere: boolean
  /** Its oldest waiter that has not been passed too often; those before it have (ADM-6). Null: all have. */
  passable: Waiter | null
  /** Passes, each as the newest arrival it counts for: ascending, only the highest that matter (`passes.ts`). */
  passes: number[]
  /** The grant that passed it last, and for which arrivals. */
  passedByGrant: number
  passedUpTo: number
  /** Deadline of its first waiter, or of one before that: set right when it is reached. */
  rank: number
  heapIndex: number // in the queue's heap of deadlines

  constructor(route: Route, keyed: Keyed, id: string, lines: readonly Line[]) {
    const { queue } = route.program
    assert(queue !== null, 'a call queues whose program has no queue')
    this.route = route
    this.id = id
    this.isKeyed = id !== ''
    this.partitions = keyed.partitions
    this.place = keyed.place
    this.delayMs = queue.maxQueueDelayMs
    this.waiters = new List()
    this.shapes = this.isKeyed ? null : [new Waiter(this, 0, 0, 0, null), new PermitLease(route, 0)]
    this.lines = lines
    this.spots = lines.map((line) => new Spot(this, line))
    this.parkedAt = this.last
    this.isEverywhere = lines.length === 1
    this.passable = null
    this.passes = []
    this.passedByGrant = 0
    this.passedUpTo = 0
    this.rank = 0
    this.heapIndex = -1
  }

  /** Its oldest waiter, while it stands in the queue. */
  get first(): Waiter {
    const { first } = this.waiters
    assert(first !== null, 'a lane stands in the queue without a waiter')
    return first
  }

  /** Where it stands when it has room everywhere and lacks only its turn (QUE-11). */
  get last(): Spot {
    const spot = this.spots[this.spots.length - 1]
    assert(spot !== undefined, 'a call queues that needs nothing')
    return spot
  }

  /** A waiter more or less needs each of its resources. Waiters up to `seenBy` see which are full now; 0: nobody looks. */
  changeWaiting(count: 1 | -1, seenBy: number, nowMs: number): void {
    const { lines } = this
    // By index: an iterator costs more than what is done (`queue.release`).
    for (let index = 0; index < lines.length; index += 1) {
      const line = lines[index]
      if (line === undefined) continue
      const { resource } = line
      resource.waiting += count
      if (seenBy > 0 && resource.msUntilRoom(nowMs, 0) > 0) line.fullUpTo = seenBy
    }
  }

  /** The last of its resources that lacks room; undefined: all have room. What is kept for it is room, too. */
  lacking(nowMs: number, isKeptForIt: boolean): Spot | undefined {
    // The last is the most specific, and the least likely to get room that this lane still cannot use.
    for (let index = this.spots.length - 1; index >= 0; index -= 1) {
      const spot = this.spots[index]
      if (spot === undefined) continue
      const { resource } = spot.line
      if (resource.msUntilRoom(nowMs, isKeptForIt ? 0 : resource.kept) > 0) return spot
    }
    return undefined
  }

  /** As {@link lacking} with one waiter, who has come last while everybody else is due first (QUE-11). */
  lackingLast(nowMs: number): Spot | undefined {
    return this.spots.findLast(({ line: { resource } }) => resource.msUntilRoom(nowMs, resource.waiting - 1) > 0)
  }

  /** Moves on to the next waiter that may be passed, which is the one that stands among the strangers of its lines. */
  setPassable(waiter: Waiter | null): void {
    this.passable = waiter
    for (const spot of this.spots) {
      if (spot === this.parkedAt) continue
      const { strangers } = spot.line
      if (waiter === null) {
        if (spot.heapIndex !== -1) strangers.remove(spot)
      } else if (spot.heapIndex === -1) {
        spot.rank = waiter.arrival
        strangers.push(spot)
      } else strangers.rerank(spot, waiter.arrival)
    }
  }
}

/**
 * A lane at one of its resources. Its rank is, where it is parked, the arrival of the lane's first waiter or of one before
 * that; among strangers that of `passable`.
 */
export class Spot implements HeapItem {
  readonly lane: Lane
  readonly line: Line
  rank: number
  heapIndex: number // in `line.parked` or `line.strangers`, or in neither while all its waiters have been passed too often

  constructor(lane: Lane, line: Line) {
    this.lane = lane
    this.line = line
    this.rank = 0
    this.heapIndex = -1
  }
}

/** The lanes that need one resource. Made when somebody first waits for it, then it stays with the resource. */
export class Line implements HeapItem {
  readonly resource: Resource
  /** Lanes that stand here: looked at when the resource gets room. */
  readonly parked: Heap<Spot>
  /** Lanes that need the resource but stand elsewhere: passed when its room goes to a newer call (ADM-6). */
  readonly strangers: Heap<Spot>
  /** The newest arrival number that has seen the resource without room; waiters up to it have lacked it. */
  fullUpTo: number
  /** May have room that nobody has been offered yet. */
  dirty: boolean
  /** While dirty the arrival that can be next in it, or one before; else when a timed resource gets room. */
  rank: number
  heapIndex: number // in the heap of dirty lines or of refills

  constructor(resource: Resource) {
    this.resource = resource
    this.parked = new Heap()
    this.strangers = new Heap()
    this.fullUpTo = 0
    this.dirty = false
    this.rank = 0
    this.heapIndex = -1
  }

  /** Who is parked here and came first. The order is set right only now: mostly nobody asks (`queue.release`). */
  oldest(): Spot | undefined {
    let spot = this.parked.peek()
    while (spot !== undefined && spot.rank !== spot.lane.first.arrival) {
      this.parked.rerank(spot, spot.lane.first.arrival)
      spot = this.parked.peek()
    }
    return spot
  }
}
