import { assert } from '../assert.ts'
import { Heap } from '../heap.ts'
import type { Resource } from '../kernel/resource.ts'
import type { Route } from '../program/program.ts'
import { type Arrival, Lane, Line, type Place } from './lane.ts'

/**
 * Who stands where: lanes, the lines they stand in, and three orders over them (deadline, refill, oldest in a dirty
 * line). No decision is taken here; `queue.ts` decides, this keeps the places right.
 *
 * Always true between two steps:
 * 1. A lane that stands has a waiter. It is `parked` at exactly one place, with the arrival number of its first waiter.
 * 2. It stands among the `strangers` of its other lines with that of its oldest waiter that has not been passed too
 *    often (`passes.ts`), or not at all if there is none.
 * 3. A line is dirty, or has a refill, or (no lane being parked in it, or its room coming with an event only) neither.
 */
export class Lines {
  arrivals: number // arrival numbers given out: the newest
  readonly #keyed: Map<Route, Map<string, Lane>> // lanes with partitions or places that stand
  readonly #deadlines: Heap<Lane>
  readonly #refills: Heap<Line>
  readonly #dirty: Heap<Line> // keyed by a lower bound of the oldest arrival that can be next in it

  constructor() {
    this.arrivals = 0
    this.#keyed = new Map()
    this.#deadlines = new Heap()
    this.#refills = new Heap()
    this.#dirty = new Heap()
  }

  /** Undefined: nobody has ever waited for it. */
  of({ line }: Resource): Line | undefined {
    return line instanceof Line ? line : undefined
  }

  /** The one lane that stands; undefined: there are several, or none. */
  get only(): Lane | undefined {
    return this.#deadlines.size === 1 ? this.#deadlines.peek() : undefined
  }

  /** When something is due: a deadline or a refill. Infinity: never. */
  get nextMs(): number {
    const never = Number.POSITIVE_INFINITY
    return Math.min(this.#deadlines.peek()?.key ?? never, this.#refills.peek()?.key ?? never)
  }

  /** Since when the oldest waiter waits; `nowMs` when nobody does. O(lanes). */
  oldestMs(nowMs: number): number {
    let oldestMs = nowMs
    this.#deadlines.forEachUpTo(Number.POSITIVE_INFINITY, ({ first }) => {
      oldestMs = Math.min(oldestMs, first.enqueuedAtMs)
    })
    return oldestMs
  }

  /** A lane whose first waiter has no time left. */
  expired(nowMs: number): Lane | undefined {
    const lane = this.#deadlines.peek()
    return lane !== undefined && lane.key <= nowMs ? lane : undefined
  }

  /** Lines whose resource has room again by now are dirty. */
  refill(nowMs: number): void {
    for (let line = this.#refills.peek(); line !== undefined && line.key <= nowMs; line = this.#refills.peek()) {
      this.#refills.remove(line)
      this.markDirty(line)
    }
  }

  get oldestDirty(): Line | undefined {
    return this.#dirty.peek()
  }

  /** Is an older lane to be looked at before this place of the oldest dirty line? Sets the line's order right. */
  isBehind(line: Line, place: Place): boolean {
    if (place.key > line.key) this.#dirty.rekey(line, place.key)
    return this.#dirty.peek() !== line
  }

  /** The line may have room that nobody has been offered yet; nothing if nobody stands in it. */
  markDirty(line: Line): void {
    const first = line.parked.peek()
    if (first === undefined) return
    if (line.dirty) {
      if (first.key < line.key) this.#dirty.rekey(line, first.key)
      return
    }
    if (line.heapIndex !== -1) this.#refills.remove(line)
    line.dirty = true
    line.key = first.key
    this.#dirty.push(line)
  }

  /** Nobody in the line can use what it has. `ahead`: what is kept back from whoever could be next. */
  clean(line: Line, nowMs: number, ahead: number): void {
    this.#dirty.remove(line)
    line.dirty = false
    this.#setRefill(line, nowMs, ahead)
  }

  /** The lane of a call that has come to wait; it may not stand yet ({@link stand}). */
  laneFor(arrival: Arrival): Lane {
    const { route, partitions, place } = arrival
    if (partitions === null && place === null) {
      if (route.lane instanceof Lane) return route.lane
      const lane = this.#laneOf(arrival, '')
      route.lane = lane
      return lane
    }
    const id = laneId(arrival)
    const lanes = this.#keyed.get(route) ?? new Map<string, Lane>()
    if (lanes.size === 0) this.#keyed.set(route, lanes)
    let lane = lanes.get(id)
    if (lane === undefined) {
      lane = this.#laneOf(arrival, id)
      lanes.set(id, lane)
    }
    return lane
  }

  /** A lane has its first waiter and takes its places. */
  stand(lane: Lane, nowMs: number): void {
    const { first, parkedAt } = lane
    lane.key = first.deadlineAtMs
    this.#deadlines.push(lane)
    parkedAt.key = first.key
    parkedAt.line.parked.push(parkedAt)
    lane.setPassable(first)
    // What it lacks may only be kept back for others, or its turn; then it is looked at when they have started.
    if (parkedAt.line.resource.msUntilRoom(nowMs, 0) === 0) this.markDirty(parkedAt.line)
    else this.#setRefill(parkedAt.line, nowMs, 0)
  }

  /** Moves a lane to the line of another resource that it lacks. */
  park(lane: Lane, place: Place, nowMs: number, ahead: number): void {
    const before = lane.parkedAt
    assert(before !== place, 'a lane is moved to where it stands')
    before.line.parked.remove(before)
    if (before.line.parked.size === 0) this.#settle(before.line)
    if (place.heapIndex !== -1) place.line.strangers.remove(place)
    lane.parkedAt = place
    place.key = lane.first.key
    place.line.parked.push(place)
    lane.setPassable(lane.passable)
    if (place.line.dirty) this.markDirty(place.line)
    else this.#setRefill(place.line, nowMs, ahead)
  }

  /** The first waiter of a lane has left: the next takes its places, or the lane goes. */
  advance(lane: Lane): void {
    const { parkedAt, waiters } = lane
    const { first } = waiters
    if (first !== null) {
      parkedAt.line.parked.rekey(parkedAt, first.key)
      this.#deadlines.rekey(lane, first.deadlineAtMs)
      return
    }
    parkedAt.line.parked.remove(parkedAt)
    if (parkedAt.line.parked.size === 0) this.#settle(parkedAt.line)
    this.#deadlines.remove(lane)
    if (lane.passes.length > 0) lane.passes = []
    if (lane.id !== '') this.#forget(lane)
  }

  /** A lane with partitions goes, and with it what its partitions alone have: keys come and go, routes do not. */
  #forget({ route, id, partitions }: Lane): void {
    const lanes = this.#keyed.get(route)
    lanes?.delete(id)
    if (lanes?.size === 0) this.#keyed.delete(route)
    for (const { concurrency, rate } of partitions ?? []) {
      if (concurrency?.waiting === 0) concurrency.line = null
      if (rate?.waiting === 0) rate.line = null
    }
  }

  #laneOf(arrival: Arrival, id: string): Lane {
    const lines = arrival.resources.map((resource) => {
      const line = this.of(resource) ?? new Line(resource)
      resource.line = line
      return line
    })
    return new Lane(arrival, id, lines)
  }

  /** Nobody stands in the line any more: there is nobody to look for, now or later. */
  #settle(line: Line): void {
    if (line.heapIndex === -1) return
    if (line.dirty) this.#dirty.remove(line)
    else this.#refills.remove(line)
    line.dirty = false
  }

  #setRefill(line: Line, nowMs: number, ahead: number): void {
    // A dirty line is looked at before any refill of it, and has its refill set then.
    if (!line.resource.timed || line.dirty || line.parked.size === 0) return
    const atMs = nowMs + Math.max(1, line.resource.msUntilRoom(nowMs, ahead))
    if (line.heapIndex !== -1) this.#refills.rekey(line, atMs)
    else {
      line.key = atMs
      this.#refills.push(line)
    }
  }
}

/** The keys of a lane: names and keys may contain anything, so each comes after its length. */
function laneId({ partitions, place }: Arrival): string {
  const keys = (partitions ?? []).map(({ id, pool }) => lengthAndText(pool.scope.name) + lengthAndText(id))
  return `${place === null ? '' : lengthAndText(place.id)}|${keys.join('')}`
}

function lengthAndText(text: string): string {
  return `${text.length}:${text}`
}
