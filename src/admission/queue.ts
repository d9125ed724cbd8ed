import { Alarm } from '../alarm.ts'
import { assert } from '../assert.ts'
import type { Timeline } from '../clock.ts'
import type { QueueLedger } from '../kernel/queue-ledger.ts'
import type { Resource } from '../kernel/resource.ts'
import type { Program } from '../program/program.ts'
import { type Refusal, refusal } from '../refusal.ts'
import type { Totals } from '../totals.ts'
import type { Arrival, Lane, Line, Place } from './lane.ts'
import { type Lease, PermitLease } from './lease.ts'
import { Lines } from './lines.ts'
import { onOwnLooks, onOwnTimer } from './own-timer.ts'
import { Passes } from './passes.ts'
import { Waiter } from './waiter.ts'

/** Starts in one dispatch before the rest waits for a later turn of the event loop (QUE-11). */
export const MAX_STARTS = 256

const ABORTED: Refusal = Object.freeze(refusal('aborted'))

/**
 * The only place where a call waits: one way in (enqueue), four ways out (dispatch, cancel, expire, stop).
 *
 * Every waiter stands in a lane, every lane in the line of one resource that it lacks (`lines.ts`). What gets room
 * marks its line dirty; dispatch goes through dirty lines, oldest lane first, and grants each lane or moves it to the
 * line of another resource that it lacks. So a release looks only at lanes that its room could start, whatever the
 * depth (QUE-7), and what comes out is what a scan of all waiters in arrival order would give (ADM-4).
 *
 * Always true between two steps:
 * 1. ledger.calls = waiters in lanes; `resource.waiting` = waiters that need it; `program.queued` likewise.
 * 2. A lane parked at a line that is not dirty cannot start: the line's resource has no room for it. While a batch is
 *    pending (`#backlog`), newcomers who can wait do so behind whoever shares a resource with them, and the others count
 *    everybody who waits for a resource as ahead of them (QUE-11).
 * 3. The alarm is set for the earliest deadline or refill, or earlier; while nothing waits no timer runs (QUE-9).
 */
export class Queue {
  readonly #timeline: Timeline
  readonly #ledger: QueueLedger
  readonly #totals: Totals
  readonly #onLeft: (program: Program) => void
  readonly #ownTimers: boolean
  readonly #wait: typeof onOwnTimer
  readonly #lines: Lines
  readonly #passes: Passes
  readonly #alarm: Alarm
  readonly #continuation: Alarm
  #arrivals: number // arrival numbers given out
  #backlog: boolean

  /** `ownTimers`: every waiter has a timer of its own instead of one for all; `look`: nobody can wake it (RUN-3). */
  constructor(
    timeline: Timeline,
    ledger: QueueLedger,
    totals: Totals,
    onLeft: (program: Program) => void,
    ownTimers: boolean | 'look',
  ) {
    this.#timeline = timeline
    this.#ledger = ledger
    this.#totals = totals
    this.#onLeft = onLeft
    this.#ownTimers = ownTimers !== false
    this.#wait = ownTimers === 'look' ? onOwnLooks : onOwnTimer
    this.#lines = new Lines()
    this.#passes = new Passes((line) => this.#lines.markDirty(line))
    this.#alarm = new Alarm(timeline, (nowMs) => this.settle(nowMs))
    this.#continuation = new Alarm(timeline, (nowMs) => {
      this.#backlog = false
      this.settle(nowMs)
    })
    this.#arrivals = 0
    this.#backlog = false
  }

  get isEmpty(): boolean {
    return this.#ledger.calls === 0
  }

  /** How long the oldest waiter has waited; 0 when nobody waits. O(lanes). */
  oldestWaitMs(nowMs: number): number {
    return nowMs - this.#lines.oldestMs(nowMs)
  }

  /** How many of a resource a newcomer must leave to waiters that are due them (ADM-4, ADM-6). */
  aheadOfNewcomer(resource: Resource): number {
    if (resource.waiting === 0) return 0
    return this.#backlog ? resource.waiting : (this.#lines.of(resource)?.kept ?? 0)
  }

  /** A resource of a newcomer that waiters of a pending batch may be due first, though there is room for all (QUE-11). */
  inBacklog(resources: readonly Resource[]): Resource | undefined {
    return this.#backlog ? resources.find((resource) => resource.waiting > 0) : undefined
  }

  /** The one way in. The caller has checked the bounds; the reservation is returned when the waiter leaves (QUE-1). */
  enqueue(arrival: Arrival, nowMs: number): Promise<Lease | Refusal> {
    const { route, policy, bytes, signal } = arrival
    this.#arrivals += 1
    this.#ledger.reserve(bytes)
    this.#totals.queued += 1
    route.program.queued += 1
    const lane = this.#lines.laneFor(arrival, nowMs, (resource) => this.aheadOfNewcomer(resource))
    for (const { line } of lane.places) {
      line.resource.waiting += 1
      if (line.resource.msUntilRoom(nowMs, 0) > 0) line.fullAt = this.#arrivals
    }
    const { promise, resolve } = withResolvers<Lease | Refusal>()
    const waiter = new Waiter(lane, this.#arrivals, bytes, nowMs, nowMs + policy.maxQueueDelayMs, resolve)
    lane.waiters.append(waiter)
    if (lane.waiters.size === 1) this.#lines.stand(lane, nowMs)
    else if (lane.passable === null) lane.setPassable(waiter)
    if (signal !== undefined) {
      waiter.listen(signal, () => {
        this.#refuse(waiter, ABORTED)
        this.settle(this.#timeline.nowMs())
      })
    }
    this.#setAlarm()
    if (!this.#ownTimers) return promise
    return this.#wait(waiter, promise, this.#timeline, (lookMs) => this.settle(lookMs), nowMs)
  }

  /**
   * A newcomer is about to take of these. Whoever stands in a line that has room all the same lacks another scope, and
   * nobody has looked because that one blocks all; each moves there now, or it would not count as passed (ADM-6).
   */
  beforePass(resources: readonly Resource[], nowMs: number): void {
    const isDirty = (resource: Resource): boolean => resource.waiting > 0 && this.#lines.of(resource)?.dirty === true
    if (!this.#backlog && resources.some(isDirty)) this.#dispatch(nowMs, true)
  }

  /** A call was admitted without waiting: whoever it passed remembers (ADM-6). Only while somebody waits. */
  passedBy(resources: Iterable<Resource>, nowMs: number): void {
    const lines: Line[] = []
    for (const resource of resources) {
      const line = resource.waiting === 0 ? undefined : this.#lines.of(resource)
      if (line !== undefined) lines.push(line)
    }
    this.#handedOut(lines, Number.POSITIVE_INFINITY, nowMs)
    // Another waiter may be protected now, and what was kept for the one before is free.
    if (!this.#backlog) this.#dispatch(nowMs)
  }

  /** Room may have come to a resource: a release or a larger limit. {@link settle} hands it out. */
  offer(resource: Resource): void {
    const line = resource.waiting === 0 ? undefined : this.#lines.of(resource)
    if (line !== undefined) this.#lines.markDirty(line)
  }

  /** A limit has changed: waiters so far have seen the scope full, or it may have room for them. */
  resized(resource: Resource): void {
    const line = this.#lines.of(resource)
    if (line === undefined) return
    if (resource.msUntilRoom(0, 0) > 0) line.fullAt = this.#arrivals
    else this.#lines.markDirty(line)
  }

  /**
   * Brings the queue up to `nowMs`: expires first (QUE-12), then refills, then starts whoever fits. After this no
   * waiter can start, unless a batch is pending.
   */
  settle(nowMs: number): void {
    for (let lane = this.#lines.expired(nowMs); lane !== undefined; lane = this.#lines.expired(nowMs)) {
      // Where it stands may have room by now, with nobody looking because another scope blocks all (ADM-10).
      const { line } = lane.lacking(nowMs, (each) => this.#passes.aheadOf(lane.first, each)) ?? lane.parkedAt
      this.#refuse(lane.first, line.resource.scope.refuse('queue_timeout'))
    }
    this.#lines.refill(nowMs)
    if (!this.#backlog || this.#ownTimers) this.#dispatch(nowMs)
    this.#setAlarm()
  }

  /** Every waiter leaves with this answer (stop). */
  refuseAll(answer: Refusal): void {
    const everMs = Number.POSITIVE_INFINITY
    for (let lane = this.#lines.expired(everMs); lane !== undefined; lane = this.#lines.expired(everMs)) {
      this.#refuse(lane.first, answer)
    }
    this.#setAlarm()
  }

  /** Grants oldest first, up to a batch; then the rest goes on in a later turn, and newcomers stay behind (QUE-11). */
  #dispatch(nowMs: number, movesAll = false): void {
    let started = 0
    this.#backlog = false
    for (let line = this.#lines.oldestDirty; line !== undefined; line = this.#lines.oldestDirty) {
      const place = this.#nextAt(line, nowMs)
      if (place === undefined) {
        this.#lines.clean(line, nowMs, this.#aheadAt(line))
        continue
      }
      if (this.#lines.isBehind(line, place)) continue
      const { lane } = place
      const lacking = lane.lacking(nowMs, (other) => this.#passes.aheadOf(lane.first, other))
      if (lacking !== undefined) {
        const { resource } = lacking.line
        // If everybody needs what is lacking, nobody can start; the lines stay dirty until that has room.
        const blocksAll = resource.waiting === this.#ledger.calls && resource.msUntilRoom(nowMs, 0) > 0
        if (blocksAll && !resource.timed && !movesAll) return
        this.#lines.park(lane, lacking, nowMs, this.#aheadAt(lacking.line))
        continue
      }
      if (started === MAX_STARTS) {
        this.#backlog = true
        if (this.#ownTimers) this.#continuation.clear()
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
    const place = this.#passes.protected?.lane.parkedAt
    return place?.line === line ? place : undefined
  }

  /** How many of a line's permits are kept back from whoever could be next in it. */
  #aheadAt(line: Line): number {
    return this.#passes.protected?.lane.parkedAt.line === line ? 0 : line.kept
  }

  #grant(lane: Lane, nowMs: number): void {
    const waiter = lane.first
    const { route, partitions, place, places } = lane
    route.take(nowMs)
    for (const partition of partitions) {
      partition.concurrency?.take()
      partition.rate?.take(nowMs)
      partition.pool.stamp(partition, nowMs)
    }
    place?.take()
    const lines = places.map(({ line }) => line)
    this.#handedOut(lines, waiter.key, nowMs)
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
    const { lane, next } = waiter
    const wasFirst = lane.waiters.first === waiter
    const wasWaiting = lane.waiters.remove(waiter)
    assert(wasWaiting, 'a waiter leaves the queue twice')
    this.#ledger.unreserve(waiter.bytes)
    lane.route.program.queued -= 1
    for (const { line } of lane.places) line.resource.waiting -= 1
    this.#passes.left(waiter)
    if (lane.passable === waiter) lane.setPassable(next)
    if (wasFirst) this.#lines.advance(lane)
  }

  /** Room of these lines went to the call of arrival `key`: who was passed, and who has now seen them full? */
  #handedOut(lines: readonly Line[], key: number, nowMs: number): void {
    this.#passes.count(lines, key, (line) => this.#backlog && line.dirty)
    for (const line of lines) if (line.resource.msUntilRoom(nowMs, 0) > 0) line.fullAt = this.#arrivals
  }

  #setAlarm(): void {
    if (this.#ledger.calls === 0) {
      this.#alarm.clear()
      this.#continuation.clear()
      this.#backlog = false
    } else if (!this.#ownTimers) this.#alarm.setBy(this.#lines.nextMs)
  }
}

function withResolvers<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let settle: ((value: T) => void) | undefined
  const promise = new Promise<T>((resolve) => {
    settle = resolve
  })
  assert(settle !== undefined, 'a promise runs its executor at once')
  return { promise, resolve: settle }
}
