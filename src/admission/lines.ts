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
 * 1. A lane has a waiter. It stands `parked` at exactly one place, with the arrival number of its first waiter.
 * 2. It stands among the `strangers` of its other lines with that of its oldest waiter that has not been passed too
 *    often (`passes.ts`), or not at all if there is none.
 * 3. A line exists while a lane needs its resource. It is dirty, or has a refill, or (no lane being parked in it, or its
 *    room coming with an event only) neither.
 */
export class Lines {
  readonly #lanes: Map<Route, Map<string, Lane>>
  readonly #lines: Map<Resource, Line>
  readonly #deadlines: Heap<Lane>
  readonly #refills: Heap<Line>
  readonly #dirty: Heap<Line> // keyed by a lower bound of the oldest arrival that can be next in it

  constructor() {
    this.#lanes = new Map()
    this.#lines = new Map()
    this.#deadlines = new Heap()
    this.#refills = new Heap()
    this.#dirty = new Heap()
  }

  of(resource: Resource): Line | undefined {
    return this.#lines.get(resource)
  }

  /** When something is due: a deadline or a refill. Infinity: never. */
  get nextMs(): number {
    const never = Number.POSITIVE_INFINITY
    return Math.min(this.#deadlines.peek()?.key ?? never, this.#refills.peek()?.key ?? never)
  }

  /** Since when the oldest waiter waits; `nowMs` when nobody does. O(lanes). */
  oldestMs(nowMs: number): number {
    let oldestMs = nowMs
    for (const lanes of this.#lanes.values()) {
      for (const lane of lanes.values()) oldestMs = Math.min(oldestMs, lane.first.enqueuedAtMs)
    }
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

  /** The lane of a call that has come to wait; a new one has not taken its places yet ({@link stand}). */
  laneFor(arrival: Arrival, nowMs: number, ahead: (resource: Resource) => number): Lane {
    const { route, resources } = arrival
    const id = laneId(arrival)
    const lanes = this.#lanes.get(route) ?? new Map<string, Lane>()
    if (lanes.size === 0) this.#lanes.set(route, lanes)
    const present = lanes.get(id)
    if (present !== undefined) return present
    const lines = resources.map((resource) => this.#lineOf(resource))
    const lane = new Lane(arrival, id, lines, nowMs, (line) => ahead(line.resource))
    lanes.set(id, lane)
    return lane
  }

  /** A new lane, with its first waiter, takes its places. */
  stand(lane: Lane, nowMs: number): void {
    const { first, parkedAt } = lane
    lane.key = first.deadlineAtMs
    this.#deadlines.push(lane)
    for (const { line } of lane.places) line.lanes += 1
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
    for (const { line } of lane.places) this.#leave(line)
    this.#deadlines.remove(lane)
    const lanes = this.#lanes.get(lane.route)
    lanes?.delete(lane.id)
    if (lanes?.size === 0) this.#lanes.delete(lane.route)
  }

  #lineOf(resource: Resource): Line {
    const present = this.#lines.get(resource)
    if (present !== undefined) return present
    const line = new Line(resource)
    this.#lines.set(resource, line)
    return line
  }

  #leave(line: Line): void {
    line.lanes -= 1
    if (line.lanes > 0) return
    if (line.heapIndex !== -1) (line.dirty ? this.#dirty : this.#refills).remove(line)
    this.#lines.delete(line.resource)
  }

  #setRefill(line: Line, nowMs: number, ahead: number): void {
    if (!line.resource.timed || line.parked.size === 0) return
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
  if (partitions.length === 0 && place === null) return ''
  const keys = partitions.map(({ id, pool }) => lengthAndText(pool.scope.name) + lengthAndText(id))
  return `${place === null ? '' : lengthAndText(place.id)}|${keys.join('')}`
}

function lengthAndText(text: string): string {
  return `${text.length}:${text}`
}
