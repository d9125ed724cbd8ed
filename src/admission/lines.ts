import { assert } from '../assert.ts'
import { Heap } from '../heap.ts'
import type { Resource } from '../kernel/resource.ts'
import type { Route } from '../program/route.ts'
import { Lane, Line, type Spot } from './lane.ts'
import { type Keyed, resourcesOf } from './needs.ts'

/**
 * Who stands where: lanes, the lines they stand in, and three orders over them (deadline, refill, oldest in a dirty
 * line). No decision is taken here; `queue.ts` decides, this keeps the spots right.
 *
 * Always true between two steps:
 * 1. A lane that stands has a waiter. It is `parked` at exactly one spot, with the arrival number of its first waiter or
 *    of one before that, as its rank among the deadlines is that of its first waiter or less: who leaves moves nothing.
 * 2. It stands among the `strangers` of its other lines with that of its oldest waiter that has not been passed too
 *    often (`passes.ts`), or not at all if there is none.
 * 3. A line is dirty, or has a refill, or (no lane being parked in it, or its room coming with an event only) neither.
 */
export class Lines {
  /** The one lane that stands; undefined: there are several, or none. */
  only: Lane | undefined
  /** Nothing is due before it, neither a deadline nor a refill. Infinity: never. */
  dueMs: number
  readonly #keyedLanes: Map<Route, Map<string, Lane>> // lanes with partitions or places that stand
  readonly #deadlines: Heap<Lane>
  readonly #refills: Heap<Line>
  readonly #dirty: Heap<Line> // ranked by a lower bound of the oldest arrival that can be next in it

  constructor() {
    this.only = undefined
    this.dueMs = Number.POSITIVE_INFINITY
    this.#keyedLanes = new Map()
    this.#deadlines = new Heap()
    this.#refills = new Heap()
    this.#dirty = new Heap()
  }

  /** Undefined: nobody has ever waited for it. */
  of({ line }: Resource): Line | undefined {
    return line instanceof Line ? line : undefined
  }

  /** Since when the oldest waiter waits; `nowMs` when nobody does. O(lanes). */
  oldestMs(nowMs: number): number {
    let oldestMs = nowMs
    this.#deadlines.forEachUpTo(Number.POSITIVE_INFINITY, ({ first }) => {
      oldestMs = Math.min(oldestMs, first.enqueuedAtMs)
    })
    return oldestMs
  }

  /** A lane whose first waiter has no time left, and less than any other. */
  expired(nowMs: number): Lane | undefined {
    for (let lane = this.#deadlines.peek(); lane !== undefined && lane.rank <= nowMs; lane = this.#deadlines.peek()) {
      const { deadlineAtMs } = lane.first
      if (lane.rank === deadlineAtMs) return lane
      this.#deadlines.rerank(lane, deadlineAtMs)
    }
    return undefined
  }

  /** Lines whose resource has room again by now are dirty. Whoever has {@link expired} is gone. */
  refill(nowMs: number): void {
    for (let line = this.#refills.peek(); line !== undefined && line.rank <= nowMs; line = this.#refills.peek()) {
      this.#refills.remove(line)
      this.markDirty(line)
    }
    const never = Number.POSITIVE_INFINITY
    this.dueMs = Math.min(this.#deadlines.peek()?.rank ?? never, this.#refills.peek()?.rank ?? never)
  }

  get oldestDirty(): Line | undefined {
    return this.#dirty.peek()
  }

  /** Is an older lane to be looked at before this spot of the oldest dirty line? Sets the line's order right. */
  isBehind(line: Line, spot: Spot): boolean {
    const { arrival } = spot.lane.first
    if (arrival > line.rank) this.#dirty.rerank(line, arrival)
    return this.#dirty.peek() !== line
  }

  /** The line may have room that nobody has been offered yet; nothing if nobody stands in it. */
  markDirty(line: Line): void {
    const first = line.parked.peek()
    if (first === undefined) return
    if (line.dirty) {
      if (first.rank < line.rank) this.#dirty.rerank(line, first.rank)
      return
    }
    if (line.heapIndex !== -1) this.#refills.remove(line)
    line.dirty = true
    line.rank = first.rank
    this.#dirty.push(line)
  }

  /** Nobody in the line can use what it has. `ahead`: what is kept back from whoever could be next. */
  clean(line: Line, nowMs: number, ahead: number): void {
    this.#dirty.remove(line)
    line.dirty = false
    this.#setRefill(line, nowMs, ahead)
  }

  /** The lane of a call that has come to wait; it may not stand yet ({@link stand}). */
  laneFor(route: Route, keyed: Keyed): Lane {
    if (keyed.partitions !== null || keyed.place !== null) return this.#keyedLaneFor(route, keyed)
    if (route.lane instanceof Lane) return route.lane
    const lane = this.#laneOf(route, keyed, '')
    route.lane = lane
    return lane
  }

  #keyedLaneFor(route: Route, keyed: Keyed): Lane {
    const id = laneId(keyed)
    const lanes = this.#keyedLanes.get(route) ?? new Map<string, Lane>()
    if (lanes.size === 0) this.#keyedLanes.set(route, lanes)
    let lane = lanes.get(id)
    if (lane === undefined) {
      lane = this.#laneOf(route, keyed, id)
      lanes.set(id, lane)
    }
    return lane
  }

  /** A lane has its first waiter and takes its spots. */
  stand(lane: Lane, nowMs: number): void {
    const { first, parkedAt } = lane
    lane.rank = first.deadlineAtMs
    this.#deadlines.push(lane)
    this.#setOnly()
    this.dueMs = Math.min(this.dueMs, lane.rank)
    parkedAt.rank = first.arrival
    parkedAt.line.parked.push(parkedAt)
    if (!lane.isEverywhere) lane.setPassable(first)
    // What it lacks may only be kept back for others, or its turn; then it is looked at when they have started.
    if (parkedAt.line.resource.msUntilRoom(nowMs, 0) === 0) this.markDirty(parkedAt.line)
    else this.#setRefill(parkedAt.line, nowMs, 0)
  }

  /** Moves a lane to the line of another resource that it lacks. */
  park(lane: Lane, spot: Spot, nowMs: number, ahead: number): void {
    const before = lane.parkedAt
    assert(before !== spot, 'a lane is moved to where it stands')
    before.line.parked.remove(before)
    if (before.line.parked.size === 0) this.#unlist(before.line)
    if (spot.heapIndex !== -1) spot.line.strangers.remove(spot)
    lane.parkedAt = spot
    spot.rank = lane.first.arrival
    spot.line.parked.push(spot)
    lane.setPassable(lane.passable)
    if (spot.line.dirty) this.markDirty(spot.line)
    else this.#setRefill(spot.line, nowMs, ahead)
  }

  /** The last waiter of a lane has left, and it stands no more. */
  leave(lane: Lane): void {
    const { parkedAt } = lane
    parkedAt.line.parked.remove(parkedAt)
    if (parkedAt.line.parked.size === 0) this.#unlist(parkedAt.line)
    this.#deadlines.remove(lane)
    this.#setOnly()
    if (lane.passes.length > 0) lane.passes = []
    if (lane.isKeyed) this.#forget(lane)
  }

  /** A lane with partitions goes, and with it what its partitions alone have: keys come and go, routes do not. */
  #forget({ route, id, partitions }: Lane): void {
    const lanes = this.#keyedLanes.get(route)
    lanes?.delete(id)
    if (lanes?.size === 0) this.#keyedLanes.delete(route)
    for (const { concurrency, rate } of partitions ?? []) {
      if (concurrency?.waiting === 0) concurrency.line = null
      if (rate?.waiting === 0) rate.line = null
    }
  }

  #setOnly(): void {
    this.only = this.#deadlines.size === 1 ? this.#deadlines.peek() : undefined
    if (this.#deadlines.size === 0) this.dueMs = Number.POSITIVE_INFINITY
  }

  #laneOf(route: Route, keyed: Keyed, id: string): Lane {
    const lines = resourcesOf(route, keyed).map((resource) => {
      const line = this.of(resource) ?? new Line(resource)
      resource.line = line
      return line
    })
    return new Lane(route, keyed, id, lines)
  }

  /** Nobody stands in the line any more: there is nobody to look for, now or later. */
  #unlist(line: Line): void {
    if (line.heapIndex === -1) return
    if (line.dirty) this.#dirty.remove(line)
    else this.#refills.remove(line)
    line.dirty = false
  }

  #setRefill(line: Line, nowMs: number, ahead: number): void {
    // A dirty line is looked at before any refill of it, and has its refill set then.
    if (!line.resource.timed || line.dirty || line.parked.size === 0) return
    const atMs = nowMs + Math.max(1, line.resource.msUntilRoom(nowMs, ahead))
    this.dueMs = Math.min(this.dueMs, atMs)
    if (line.heapIndex !== -1) this.#refills.rerank(line, atMs)
    else {
      line.rank = atMs
      this.#refills.push(line)
    }
  }
}

/** The keys of a lane: names and keys may contain anything, so each comes after its length. */
function laneId({ partitions, place }: Keyed): string {
  const keys = (partitions ?? []).map(({ id, pool }) => lengthAndText(pool.scope.name) + lengthAndText(id))
  return `${place === null ? '' : lengthAndText(place.id)}|${keys.join('')}`
}

function lengthAndText(text: string): string {
  return `${text.length}:${text}`
}
