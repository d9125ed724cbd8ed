import { assert } from '../assert.ts'
import type { QueueLedger } from '../kernel/queue-ledger.ts'
import type { Program } from '../program/program.ts'
import type { Refusal } from '../refusal.ts'
import { countRefusal, type Totals } from '../totals.ts'
import type { Line } from './lane.ts'
import { PermitLease } from './lease.ts'
import type { Lines } from './lines.ts'
import { startKeyed } from './needs.ts'
import type { Passes } from './passes.ts'
import type { Waiter } from './waiter.ts'

/** What those who leave leave their traces in. */
export interface DepartureParts {
  readonly ledger: QueueLedger
  readonly totals: Totals
  readonly lines: Lines
  readonly passes: Passes
  readonly onLeft: (program: Program) => void
  /** Is this line still to be looked at in a pending batch? Then nobody in it counts as passed (QUE-11). */
  readonly isPending: (line: Line) => boolean
}

/** How a waiter leaves the queue, whoever decided that it does: with its permits, or with a refusal. Once (QUE-10). */
export class Departures {
  readonly #ledger: QueueLedger
  readonly #totals: Totals
  readonly #lines: Lines
  readonly #passes: Passes
  readonly #onLeft: (program: Program) => void
  readonly #isPending: (line: Line) => boolean

  constructor({ ledger, totals, lines, passes, onLeft, isPending }: DepartureParts) {
    this.#ledger = ledger
    this.#totals = totals
    this.#lines = lines
    this.#passes = passes
    this.#onLeft = onLeft
    this.#isPending = isPending
  }

  /** The first waiter of a lane starts: it has room for all it needs. */
  grant(waiter: Waiter, nowMs: number): void {
    const { lane } = waiter
    const { route, partitions, place } = lane
    route.take(nowMs)
    if (lane.isKeyed) startKeyed(lane, nowMs)
    // Who stands alone passes nobody: the lane's other waiters are newer (`queue.release`).
    if (this.#lines.only === undefined) this.#passes.count(lane.lines, waiter.arrival, this.#isPending)
    route.program.active += 1
    this.#totals.admitted += 1
    this.#unlink(waiter, this.#totals.queued, nowMs)
    const waitedMs = nowMs - waiter.enqueuedAtMs
    waiter.answer(new PermitLease(route, lane.isKeyed ? { partitions, waitedMs, place, permits: true } : waitedMs))
  }

  /** A waiter leaves without having started. */
  refuse(waiter: Waiter, answer: Refusal): void {
    const { route, partitions, place } = waiter.lane
    this.#unlink(waiter, 0, 0)
    for (const partition of partitions ?? []) partition.pool.leave(partition)
    place?.places.leave(place)
    countRefusal(this.#totals, answer.reason)
    waiter.answer(answer)
    this.#onLeft(route.program)
  }

  /** Takes a waiter out, whichever way it leaves, and returns its reservation. `seenBy`: see {@link Lane.changeWaiting}. */
  #unlink(waiter: Waiter, seenBy: number, nowMs: number): void {
    const { lane, next } = waiter
    const wasWaiting = lane.waiters.remove(waiter)
    assert(wasWaiting, 'a waiter leaves the queue twice')
    this.#ledger.unreserve(waiter.bytes)
    lane.route.program.queued -= 1
    lane.changeWaiting(-1, seenBy, nowMs)
    if (!lane.isEverywhere) this.#passes.left(waiter, next)
    if (lane.waiters.isEmpty) this.#lines.leave(lane)
  }

  /** Room of these lines went to a call that did not wait: it passed all who do. */
  handedToNewcomer(lines: readonly Line[], nowMs: number): void {
    this.#passes.count(lines, Number.POSITIVE_INFINITY, this.#isPending)
    for (const line of lines) if (line.resource.msUntilRoom(nowMs, 0) > 0) line.fullUpTo = this.#totals.queued
  }
}
