import { Alarm } from '../alarm.ts'
import type { Timeline } from '../clock.ts'
import type { QueueLedger } from '../kernel/queue-ledger.ts'
import type { Resource } from '../kernel/resource.ts'
import type { Route } from '../program/route.ts'
import { ABORTED, type Refusal } from '../refusal.ts'
import type { Totals } from '../totals.ts'
import { type DepartureParts, Departures } from './departures.ts'
import type { Lane, Line, Spot } from './lane.ts'
import type { Lease } from './lease.ts'
import { Lines } from './lines.ts'
import type { Keyed } from './needs.ts'
import { onOwnLooks, onOwnTimer } from './own-timer.ts'
import { Passes } from './passes.ts'
import { type AbortListener, Waiter } from './waiter.ts'

/** Starts in one dispatch before the rest waits for a later turn of the event loop (QUE-11). */
export const MAX_STARTS = 256

/**
 * The only place where a call waits: one way in (enqueue), four ways out (start, abort, expire, stop).
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
  readonly #ownTimers: boolean
  readonly #wait: typeof onOwnTimer
  readonly #lines: Lines
  readonly #passes: Passes
  readonly #departures: Departures
  readonly #alarm: Alarm
  readonly #continuation: Alarm
  #backlog: boolean

  /** `ownTimers`: every waiter has a timer of its own instead of one for all; `look`: nobody can wake it (RUN-3). */
  constructor(
    timeline: Timeline,
    ledger: QueueLedger,
    totals: Totals,
    onLeft: DepartureParts['onLeft'],
    ownTimers: boolean | 'look',
  ) {
    this.#timeline = timeline
    this.#ledger = ledger
    this.#totals = totals
    this.#ownTimers = ownTimers !== false
    this.#wait = ownTimers === 'look' ? onOwnLooks : onOwnTimer
    this.#lines = new Lines()
    this.#passes = new Passes((line) => this.#lines.markDirty(line))
    this.#alarm = new Alarm(timeline, (nowMs) => this.handOut(nowMs))
    this.#continuation = new Alarm(timeline, (nowMs) => {
      this.#backlog = false
      this.handOut(nowMs)
    })
    const isPending = (line: Line): boolean => this.#backlog && line.dirty
    this.#departures = new Departures({ ledger, totals, lines: this.#lines, passes: this.#passes, onLeft, isPending })
    this.#backlog = false
  }

  get isEmpty(): boolean {
    return this.#ledger.calls === 0
  }

  /** How long the oldest waiter has waited; 0 when nobody waits. O(lanes). */
  oldestWaitMs(nowMs: number): number {
    return nowMs - this.#lines.oldestMs(nowMs)
  }

  /** Has a resource room for a newcomer, who must leave waiters what they are due (ADM-4, ADM-6)? */
  hasRoom(resource: Resource, nowMs: number): boolean {
    return resource.msUntilRoom(nowMs, this.#backlog ? resource.waiting : resource.kept) === 0
  }

  /** A resource of a newcomer that waiters of a pending batch may be due first, though there is room for all (QUE-11). */
  inBacklog(resources: readonly Resource[]): Resource | undefined {
    return this.#backlog ? resources.find((resource) => resource.waiting > 0) : undefined
  }

  /** The one way in. The caller has checked the bounds; the reservation is returned when the waiter leaves (QUE-1). */
  enqueue(
    route: Route,
    keyed: Keyed,
    bytes: number,
    listener: AbortListener | null,
    nowMs: number,
  ): Promise<Lease | Refusal> {
    const lane = this.#lines.laneFor(route, keyed)
    this.#ledger.reserve(bytes)
    this.#totals.queued += 1
    route.program.queued += 1
    const arrival = this.#totals.queued
    const isFirst = lane.waiters.isEmpty
    lane.changeWaiting(1, arrival, nowMs)
    const waiter = new Waiter(lane, arrival, bytes, nowMs, listener)
    lane.waiters.append(waiter)
    if (isFirst) this.#stand(lane, nowMs)
    else if (lane.passable === null && !lane.isEverywhere) lane.setPassable(waiter)
    if (!this.#ownTimers) return waiter.answered
    return this.#wait(waiter, this.#timeline, (lookMs) => this.handOut(lookMs), nowMs)
  }

  #stand(lane: Lane, nowMs: number): void {
    const lacking = this.#backlog ? lane.lackingLast(nowMs) : lane.lacking(nowMs, false)
    lane.parkedAt = lacking ?? lane.last
    this.#lines.stand(lane, nowMs)
    // It may not need what has blocked all so far; then the lines that were left dirty are to be looked at now.
    if (!this.#backlog && (lacking === undefined || this.#lines.only === undefined)) this.#dispatch(nowMs)
    this.#setAlarm()
  }

  /** Its caller has gone away. */
  abort(waiter: Waiter): void {
    this.#departures.refuse(waiter, ABORTED)
    this.handOut(this.#timeline.nowMs())
  }

  /**
   * A newcomer is about to take of these. Whoever stands in a line that has room all the same lacks another scope, and
   * nobody has looked because that one blocks all; each moves there now, or it would not count as passed (ADM-6).
   */
  beforePass(resources: readonly Resource[], nowMs: number): void {
    const isDirty = (resource: Resource): boolean => resource.waiting > 0 && this.#lines.of(resource)?.dirty === true
    if (this.#backlog || !resources.some(isDirty)) return
    this.#dispatch(nowMs, true)
    this.#setAlarm()
  }

  /** A call was admitted without waiting: whoever it passed remembers (ADM-6). Only while somebody waits. */
  newcomerTook(resources: Iterable<Resource>, nowMs: number): void {
    const lines: Line[] = []
    for (const resource of resources) {
      const line = resource.waiting === 0 ? undefined : this.#lines.of(resource)
      if (line !== undefined) lines.push(line)
    }
    this.#departures.handedToNewcomer(lines, nowMs)
    // Another waiter may be protected now, and what was kept for the one before is free.
    if (!this.#backlog) this.#dispatch(nowMs)
    this.#setAlarm()
  }

  /** Does it matter what is offered? A lane that stands alone is looked at in any case, unless it is not its turn. */
  get takesOffers(): boolean {
    return this.#backlog || this.#lines.only === undefined
  }

  /** A release has brought room to a resource, which {@link handOut} must hand out in this same step. */
  offer(resource: Resource): void {
    const line = resource.waiting === 0 ? undefined : this.#lines.of(resource)
    if (line !== undefined) this.#lines.markDirty(line)
  }

  /** A limit has changed: waiters so far have seen the scope full, or it may have room for them. */
  resized(resource: Resource): void {
    const line = this.#lines.of(resource)
    if (line === undefined) return
    if (resource.msUntilRoom(0, 0) > 0) line.fullUpTo = this.#totals.queued
    else this.#lines.markDirty(line)
  }

  /**
   * Brings the queue up to `nowMs`: expires first (QUE-12), then refills, then starts whoever fits. After this no
   * waiter can start, unless a batch is pending.
   */
  settle(nowMs: number): void {
    // As a rule nothing is due when a call arrives (`queue.release`).
    if (nowMs < this.#lines.dueMs && this.#lines.oldestDirty === undefined) return
    this.handOut(nowMs)
  }

  /** As {@link settle}, after {@link offer}. */
  handOut(nowMs: number): void {
    if (nowMs >= this.#lines.dueMs) this.#expireAndRefill(nowMs)
    if (!this.#backlog || this.#ownTimers) this.#dispatch(nowMs)
    this.#setAlarm()
  }

  #expireAndRefill(nowMs: number): void {
    for (let lane = this.#lines.expired(nowMs); lane !== undefined; lane = this.#lines.expired(nowMs)) {
      // Where it stands may have room by now, with nobody looking because another scope blocks all (ADM-10).
      const { line } = lane.lacking(nowMs, lane.first === this.#passes.protected) ?? lane.parkedAt
      this.#departures.refuse(lane.first, line.resource.scope.refuse('queue_timeout'))
    }
    this.#lines.refill(nowMs)
  }

  /** Every waiter leaves with this answer (stop). */
  refuseAll(answer: Refusal): void {
    const everMs = Number.POSITIVE_INFINITY
    for (let lane = this.#lines.expired(everMs); lane !== undefined; lane = this.#lines.expired(everMs)) {
      this.#departures.refuse(lane.first, answer)
    }
    this.#setAlarm()
  }

  /** Grants oldest first, up to a batch; then the rest goes on in a later turn, and newcomers stay behind (QUE-11). */
  #dispatch(nowMs: number, movesAll = false): void {
    this.#backlog = false
    const { only } = this.#lines
    if (only === undefined) this.#dispatchInOrder(nowMs, movesAll)
    else this.#dispatchOnly(only, nowMs, movesAll)
  }

  #dispatchInOrder(nowMs: number, movesAll: boolean): void {
    let started = 0
    for (let line = this.#lines.oldestDirty; line !== undefined; line = this.#lines.oldestDirty) {
      const spot = this.#nextAt(line, nowMs)
      if (spot === undefined) {
        this.#lines.clean(line, nowMs, this.#aheadAt(line))
        continue
      }
      if (this.#lines.isBehind(line, spot)) continue
      const { lane } = spot
      const lacking = lane.lacking(nowMs, lane.first === this.#passes.protected)
      if (lacking !== undefined) {
        const { resource } = lacking.line
        // If everybody needs what is lacking, nobody can start; the lines stay dirty until that has room.
        const blocksAll = resource.waiting === this.#ledger.calls && resource.msUntilRoom(nowMs, 0) > 0
        if (blocksAll && !resource.timed && !movesAll) return
        // What is kept is room for whom it is kept: its refill must not come later than that.
        const ahead = lane.first === this.#passes.protected ? 0 : this.#aheadAt(lacking.line)
        this.#lines.park(lane, lacking, nowMs, ahead)
        continue
      }
      if (started === MAX_STARTS) {
        this.#continueLater(nowMs)
        return
      }
      started += 1
      this.#departures.grant(lane.first, nowMs)
    }
  }

  /** The same for a lane that stands alone, as most do: there is no order to keep (`queue.release`). */
  #dispatchOnly(lane: Lane, nowMs: number, movesAll: boolean): void {
    const { waiters } = lane
    let started = 0
    for (let waiter = waiters.first; waiter !== null; waiter = waiters.first) {
      const lacking = lane.lacking(nowMs, waiter === this.#passes.protected)
      if (lacking !== undefined) {
        if (lacking !== lane.parkedAt || lacking.line.dirty) this.#stay(lane, lacking, nowMs, movesAll)
        return
      }
      if (started === MAX_STARTS) {
        this.#lines.markDirty(lane.parkedAt.line)
        this.#continueLater(nowMs)
        return
      }
      started += 1
      this.#departures.grant(waiter, nowMs)
    }
  }

  /** The lane that stands alone cannot start. */
  #stay(lane: Lane, lacking: Spot, nowMs: number, movesAll: boolean): void {
    if (lacking === lane.parkedAt) this.#lines.clean(lacking.line, nowMs, 0)
    else if (lacking.line.resource.timed || movesAll) this.#lines.park(lane, lacking, nowMs, 0)
    else this.#lines.markDirty(lane.parkedAt.line)
  }

  #continueLater(nowMs: number): void {
    this.#backlog = true
    if (this.#ownTimers) this.#continuation.clear()
    this.#continuation.setBy(nowMs)
  }

  /** Who is to be looked at next in a line that may have room; undefined: nobody there can use what it has. */
  #nextAt(line: Line, nowMs: number): Spot | undefined {
    const { resource } = line
    if (resource.msUntilRoom(nowMs, resource.kept) === 0) return line.oldest()
    if (resource.kept === 0 || resource.msUntilRoom(nowMs, 0) > 0) return undefined
    const spot = this.#passes.protected?.lane.parkedAt
    return spot?.line === line ? spot : undefined
  }

  /** How many of a line's permits are kept back from whoever could be next in it. */
  #aheadAt(line: Line): number {
    return this.#passes.protected?.lane.parkedAt.line === line ? 0 : line.resource.kept
  }

  #setAlarm(): void {
    if (this.#ledger.calls === 0) {
      this.#alarm.clear()
      this.#continuation.clear()
      this.#backlog = false
    } else if (!this.#ownTimers) this.#alarm.setBy(this.#lines.dueMs)
  }
}
