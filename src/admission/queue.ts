import { Alarm } from '../alarm.ts'
import { assert } from '../assert.ts'
import type { Timeline } from '../clock.ts'
import { Heap } from '../heap.ts'
import type { QueueLedger } from '../kernel/queue-ledger.ts'
import type { Resource } from '../kernel/resource.ts'
import type { Program, Route } from '../program/program.ts'
import type { Refusal } from '../refusal.ts'
import { refusal } from '../refusal.ts'
import type { Totals } from '../totals.ts'
import { type Arrival, Lane, Line, type Place } from './lane.ts'
import { type Lease, PermitLease } from './lease.ts'
import { Waiter } from './waiter.ts'

/** Starts in one dispatch before the rest waits for a later turn of the event loop (QUE-11). */
export const MAX_STARTS = 256
/** After so many passes a permit of each of its scopes is kept for a waiter (ADM-6). */
export const MAX_PASSES = 64

const ABORTED: Refusal = Object.freeze(refusal('aborted'))

/**
 * The only place where a call waits.
 *
 * Waiters that need the same form a lane; every lane stands in the line of one resource that it lacked when it was
 * last looked at. Who gets room marks its line dirty; dispatch goes through dirty lines, oldest lane first, and grants
 * or moves each lane to the line of another resource that it lacks. So a release looks only at lanes that its room
 * could start, whatever the depth (QUE-7), and the outcome is that of a scan of all waiters in arrival order (ADM-4).
 *
 * Always true between two steps:
 * 1. ledger.calls = waiters in lanes; `resource.waiting` = waiters that need it; `program.queued` likewise.
 * 2. A lane has a waiter; its places bear the arrival number of its first; it stands parked at exactly one of them.
 * 3. A lane parked at a line that is not dirty cannot start: the line's resource has no room for it. While a batch is
 *    pending (`#backlog`), newcomers count everybody who waits for a resource as ahead of them.
 * 4. A timed resource at which lanes are parked is dirty or has a refill; the alarm is set for the earliest of
 *    deadlines and refills, or earlier.
 * 5. At most one waiter is protected: the oldest of those passed too often. Its lines keep one permit back.
 */
export class Queue {
  readonly #timeline: Timeline
  readonly #ledger: QueueLedger
  readonly #totals: Totals
  readonly #onLeft: (program: Program) => void
  readonly #lanes: Map<Route, Map<string, Lane>>
  readonly #lines: Map<Resource, Line>
  readonly #deadlines: Heap<Lane>
  readonly #refills: Heap<Line>
  readonly #dirty: Heap<Line> // keyed by a lower bound of the arrival that stands first in it
  readonly #passed: Heap<Waiter>
  readonly #alarm: Alarm
  readonly #continuation: Alarm
  #protected: Waiter | null
  #arrivals: number // arrival numbers given out; also the grant counter's clock
  #grants: number
  #backlog: boolean

  constructor(timeline: Timeline, ledger: QueueLedger, totals: Totals, onLeft: (program: Program) => void) {
    this.#timeline = timeline
    this.#ledger = ledger
    this.#totals = totals
    this.#onLeft = onLeft
    this.#lanes = new Map()
    this.#lines = new Map()
    this.#deadlines = new Heap()
    this.#refills = new Heap()
    this.#dirty = new Heap()
    this.#passed = new Heap()
    this.#alarm = new Alarm(timeline, (nowMs) => this.settle(nowMs))
    this.#continuation = new Alarm(timeline, (nowMs) => {
      this.#backlog = false
      this.settle(nowMs)
    })
    this.#protected = null
    this.#arrivals = 0
    this.#grants = 0
    this.#backlog = false
  }

  get isEmpty(): boolean {
    return this.#ledger.calls === 0
  }

  /** Since when the oldest waiter waits. O(lanes). */
  oldestWaitMs(nowMs: number): number {
    let oldestMs = nowMs
    for (const lanes of this.#lanes.values()) {
      for (const lane of lanes.values()) oldestMs = Math.min(oldestMs, lane.first.enqueuedAtMs)
    }
    return nowMs - oldestMs
  }

  /** How many of a resource a newcomer must leave to waiters that are due them (ADM-4, ADM-6). */
  aheadOfNewcomer(resource: Resource): number {
    if (resource.waiting === 0) return 0
    return this.#backlog ? resource.waiting : (this.#lines.get(resource)?.kept ?? 0)
  }

  /** The one way in. The caller has checked the bounds; the reservation is returned when the waiter leaves (QUE-1). */
  enqueue(arrival: Arrival, nowMs: number): Promise<Lease | Refusal> {
    const { route, policy, bytes, signal } = arrival
    this.#arrivals += 1
    this.#ledger.reserve(bytes)
    this.#totals.queued += 1
    route.program.queued += 1
    const lane = this.#laneFor(arrival, nowMs)
    for (const { line } of lane.places) {
      line.resource.waiting += 1
      if (line.resource.msUntilRoom(nowMs, 0) > 0) line.fullAt = this.#arrivals
    }
    return new Promise((settle) => {
      const deadlineAtMs = nowMs + policy.maxQueueDelayMs
      const waiter = new Waiter(lane, this.#arrivals, bytes, nowMs, deadlineAtMs, settle)
      lane.waiters.append(waiter)
      if (lane.waiters.size === 1) this.#stand(lane, nowMs)
      if (signal !== undefined) {
        waiter.listen(signal, () => {
          this.#refuse(waiter, ABORTED)
          this.settle(this.#timeline.nowMs())
        })
      }
      this.#setAlarm()
    })
  }

  /** A call was admitted without waiting: whoever it passed remembers (ADM-6). Only while somebody waits. */
  passedBy(resources: Iterable<Resource>, nowMs: number): void {
    const lines: Line[] = []
    for (const resource of resources) {
      const line = resource.waiting === 0 ? undefined : this.#lines.get(resource)
      if (line !== undefined) lines.push(line)
    }
    this.#countPasses(lines, Number.POSITIVE_INFINITY, nowMs)
    // Another waiter may be protected now, and what was kept for the one before is free.
    if (!this.#backlog) this.#dispatch(nowMs)
  }

  /** Room may have come to a resource: a release or a larger limit. {@link settle} hands it out. */
  offer(resource: Resource): void {
    if (resource.waiting === 0) return
    const line = this.#lines.get(resource)
    if (line !== undefined) this.#markDirty(line)
  }

  /** A limit has changed: waiters so far have seen the scope full, or it may have room for them. */
  resized(resource: Resource): void {
    const line = this.#lines.get(resource)
    if (line === undefined) return
    if (resource.msUntilRoom(0, 0) > 0) line.fullAt = this.#arrivals
    else this.#markDirty(line)
  }

  /**
   * Brings the queue up to `nowMs`: expires first (QUE-12), then refills, then starts whoever fits. After this no
   * waiter can start, unless a batch is pending.
   */
  settle(nowMs: number): void {
    for (let lane = this.#deadlines.peek(); lane !== undefined && lane.key <= nowMs; lane = this.#deadlines.peek()) {
      this.#refuse(lane.first, lane.parkedAt.line.resource.scope.refuse('queue_timeout'))
    }
    for (let line = this.#refills.peek(); line !== undefined && line.key <= nowMs; line = this.#refills.peek()) {
      this.#refills.remove(line)
      this.#markDirty(line)
    }
    if (!this.#backlog) this.#dispatch(nowMs)
    this.#setAlarm()
  }

  /** Every waiter leaves with this answer (stop). */
  refuseAll(answer: Refusal): void {
    for (let lane = this.#deadlines.peek(); lane !== undefined; lane = this.#deadlines.peek()) {
      this.#refuse(lane.first, answer)
    }
    this.#setAlarm()
  }

  /** Grants oldest first, up to a batch; then the rest goes on in a later turn, and newcomers stay behind (QUE-11). */
  #dispatch(nowMs: number): void {
    let started = 0
    for (let line = this.#dirty.peek(); line !== undefined; line = this.#dirty.peek()) {
      const place = this.#nextAt(line, nowMs)
      if (place === undefined) {
        this.#clean(line, nowMs)
        continue
      }
      if (place.key > line.key) {
        this.#dirty.rekey(line, place.key)
        if (this.#dirty.peek() !== line) continue
      }
      const { lane } = place
      const lacking = lane.lacking(nowMs, (other) => (lane.first === this.#protected ? 0 : other.kept))
      if (lacking !== undefined) {
        const { resource } = lacking.line
        // If everybody needs what is lacking, nobody can start; the lines stay dirty until that has room.
        const blocksAll = resource.waiting === this.#ledger.calls && resource.msUntilRoom(nowMs, 0) > 0
        if (blocksAll && !resource.timed) return
        this.#park(lane, lacking, nowMs)
        continue
      }
      if (started === MAX_STARTS) {
        this.#backlog = true
        this.#continuation.setBy(nowMs)
        return
      }
      started += 1
      this.#grant(lane, nowMs)
    }
  }

  /** Who is to be looked at next in a line that may have room; undefined: nobody there can use what it has. */
  #nextAt(line: Line, nowMs: number): Place | undefined {
    const { resource, kept, parked } = line
    if (resource.msUntilRoom(nowMs, kept) === 0) return parked.peek()
    if (kept === 0 || resource.msUntilRoom(nowMs, 0) > 0) return undefined
    const place = this.#protected?.lane.parkedAt
    return place?.line === line ? place : undefined
  }

  #grant(lane: Lane, nowMs: number): void {
    const waiter = lane.first
    const { route, partitions, place, places } = lane
    for (const { line } of places) line.resource.take(nowMs)
    route.takeUnlimited()
    for (const partition of partitions) partition.pool.stamp(partition, nowMs)
    const lines = places.map((place) => place.line)
    this.#countPasses(lines, waiter.key, nowMs)
    route.program.active += 1
    this.#totals.admitted += 1
    this.#unlink(waiter)
    const waitedMs = nowMs - waiter.enqueuedAtMs
    waiter.answer(new PermitLease(route, { partitions, waitedMs, place, permits: true }))
  }

  #refuse(waiter: Waiter, answer: Refusal): void {
    const { route, partitions, place } = waiter.lane
    this.#unlink(waiter)
    for (const partition of partitions) partition.pool.leave(partition)
    place?.places.leave(place)
    this.#totals.refused[answer.reason] += 1
    waiter.answer(answer)
    this.#onLeft(route.program)
  }

  /** Takes a waiter out, whichever way it leaves, and returns its reservation. */
  #unlink(waiter: Waiter): void {
    const { lane } = waiter
    const wasFirst = lane.waiters.first === waiter
    const wasWaiting = lane.waiters.remove(waiter)
    assert(wasWaiting, 'a waiter leaves the queue twice')
    this.#ledger.unreserve(waiter.bytes)
    lane.route.program.queued -= 1
    for (const { line } of lane.places) line.resource.waiting -= 1
    if (waiter.heapIndex !== -1) {
      this.#passed.remove(waiter)
      this.#protectOldest()
    }
    if (wasFirst) this.#advance(lane)
  }

  /** The first waiter of a lane has left: the next takes its places, or the lane goes. */
  #advance(lane: Lane): void {
    const { first } = lane.waiters
    for (const place of lane.places) {
      const heap = place === lane.parkedAt ? place.line.parked : place.line.strangers
      if (first === null) {
        if (place.heapIndex !== -1) heap.remove(place)
        this.#leaveLine(place.line)
      } else if (place.heapIndex === -1) {
        place.key = first.key
        heap.push(place)
      } else heap.rekey(place, first.key)
    }
    if (first !== null) {
      this.#deadlines.rekey(lane, first.deadlineAtMs)
      return
    }
    this.#deadlines.remove(lane)
    const lanes = this.#lanes.get(lane.route)
    lanes?.delete(lane.id)
    if (lanes?.size === 0) this.#lanes.delete(lane.route)
  }

  #laneFor(arrival: Arrival, nowMs: number): Lane {
    const { route, resources } = arrival
    const id = laneId(arrival)
    const lanes = this.#lanes.get(route) ?? new Map<string, Lane>()
    if (lanes.size === 0) this.#lanes.set(route, lanes)
    const present = lanes.get(id)
    if (present !== undefined) return present
    const lines = resources.map((resource) => this.#lineOf(resource))
    const lane = new Lane(arrival, id, lines, nowMs, (line) => this.aheadOfNewcomer(line.resource))
    lanes.set(id, lane)
    return lane
  }

  /** A new lane takes its places. */
  #stand(lane: Lane, nowMs: number): void {
    const { first, parkedAt } = lane
    lane.key = first.deadlineAtMs
    this.#deadlines.push(lane)
    for (const place of lane.places) {
      place.key = first.key
      place.line.lanes += 1
      if (place === parkedAt) place.line.parked.push(place)
      else place.line.strangers.push(place)
    }
    // What it lacks may only be kept back for others; then it has to be looked at when they have started.
    if (parkedAt.line.resource.msUntilRoom(nowMs, 0) === 0) this.#markDirty(parkedAt.line)
    else this.#setRefill(parkedAt.line, nowMs)
  }

  /** Moves a lane to the line of another resource that it lacks. */
  #park(lane: Lane, place: Place, nowMs: number): void {
    const before = lane.parkedAt
    assert(before !== place, 'a lane is moved to where it stands')
    before.line.parked.remove(before)
    if (place.heapIndex !== -1) place.line.strangers.remove(place)
    lane.parkedAt = place
    place.line.parked.push(place)
    // A waiter that was passed too often is not counted again, so it is nobody's stranger.
    if (lane.first.heapIndex === -1) before.line.strangers.push(before)
    if (place.line.dirty) this.#markDirty(place.line)
    else this.#setRefill(place.line, nowMs)
  }

  #lineOf(resource: Resource): Line {
    const present = this.#lines.get(resource)
    if (present !== undefined) return present
    const line = new Line(resource)
    this.#lines.set(resource, line)
    return line
  }

  #leaveLine(line: Line): void {
    line.lanes -= 1
    if (line.lanes > 0) return
    if (line.heapIndex !== -1) (line.dirty ? this.#dirty : this.#refills).remove(line)
    this.#lines.delete(line.resource)
  }

  #markDirty(line: Line): void {
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

  #clean(line: Line, nowMs: number): void {
    this.#dirty.remove(line)
    line.dirty = false
    this.#setRefill(line, nowMs)
  }

  #setRefill(line: Line, nowMs: number): void {
    if (!line.resource.timed || line.parked.size === 0) return
    const isForProtected = this.#protected?.lane.parkedAt.line === line
    const atMs = nowMs + Math.max(1, line.resource.msUntilRoom(nowMs, isForProtected ? 0 : line.kept))
    if (line.heapIndex !== -1) this.#refills.rekey(line, atMs)
    else {
      line.key = atMs
      this.#refills.push(line)
    }
  }

  /**
   * Room of these lines went to the call of arrival `key`. A pass counts for each older waiter that has lacked one of
   * them and stands elsewhere, because it still lacks another (ADM-6). A waiter is visited at most 64 times.
   */
  #countPasses(lines: readonly Line[], key: number, nowMs: number): void {
    this.#grants += 1
    const passedTooOften: Waiter[] = []
    for (const line of lines) {
      if (line.strangers.size > 0) {
        line.strangers.forEachUpTo(Math.min(key - 1, line.fullAt), ({ lane }) => {
          const { first } = lane
          if (first.passedBy === this.#grants || (this.#backlog && lane.parkedAt.line.dirty)) return
          first.passedBy = this.#grants
          first.passes += 1
          if (first.passes === MAX_PASSES) passedTooOften.push(first)
        })
      }
      if (line.resource.msUntilRoom(nowMs, 0) > 0) line.fullAt = this.#arrivals
    }
    for (const waiter of passedTooOften) {
      for (const place of waiter.lane.places) {
        if (place !== waiter.lane.parkedAt) place.line.strangers.remove(place)
      }
      this.#passed.push(waiter)
    }
    if (passedTooOften.length > 0) this.#protectOldest()
  }

  #protectOldest(): void {
    const oldest = this.#passed.peek() ?? null
    if (oldest === this.#protected) return
    for (const { line } of this.#protected?.lane.places ?? []) {
      line.kept = 0
      this.#markDirty(line)
    }
    this.#protected = oldest
    for (const { line } of oldest?.lane.places ?? []) line.kept = 1
  }

  #setAlarm(): void {
    const nextMs = Math.min(this.#deadlines.peek()?.key ?? Infinity, this.#refills.peek()?.key ?? Infinity)
    if (nextMs === Infinity) {
      this.#alarm.clear()
      this.#continuation.clear()
      this.#backlog = false
    } else this.#alarm.setBy(nextMs)
  }
}

/** The keys of a lane; keys may contain anything, so their lengths go with them. */
function laneId({ partitions, place }: Arrival): string {
  if (partitions.length === 0 && place === null) return ''
  const keys = partitions.map(({ id, pool }) => `${pool.scope.name}:${id.length}:${id}`)
  return [...keys, place === null ? '' : place.id].join()
}
