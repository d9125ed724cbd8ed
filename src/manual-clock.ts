import { assert } from './assert.ts'
import type { Clock } from './clock.ts'

interface Scheduled {
  readonly atMs: number
  readonly order: number
  readonly fn: () => void
}

/**
 * A clock that moves only when told to, for tests of limits without sleeping (API-3).
 *
 * Starts at 0. `reads` and `pending` count clock readings and timers not yet due, so that a test can pin them.
 *
 * @example
 * ```ts
 * const clock = new ManualClock()
 * const core = new AdmissionCore({ clock, config: { global: { concurrency: 1 } } })
 * clock.advance(1000) // everything that was due within the second has run
 * ```
 */
export class ManualClock implements Clock {
  #nowMs: number
  #order: number
  readonly #scheduled: Set<Scheduled>
  /** How often `nowMs` was read. */
  reads: number
  /** How many timers were ever started. */
  timersStarted: number

  constructor() {
    this.#nowMs = 0
    this.#order = 0
    this.#scheduled = new Set()
    this.reads = 0
    this.timersStarted = 0
  }

  /** Timers that are neither due nor cancelled. */
  get pending(): number {
    return this.#scheduled.size
  }

  nowMs(): number {
    this.reads += 1
    return this.#nowMs
  }

  callAt(atMs: number, fn: () => void): () => void {
    assert(Number.isFinite(atMs), `callAt(${atMs}) is not an instant`)
    const scheduled: Scheduled = { atMs, order: this.#order++, fn }
    this.#scheduled.add(scheduled)
    this.timersStarted += 1
    return () => {
      this.#scheduled.delete(scheduled)
    }
  }

  /**
   * Moves time by `ms` (≥ 0) and runs what falls due, in order of instant, then of registration. Stops at each due
   * time, so a callback sees its own instant; what a callback schedules within the span runs too. Synchronous.
   */
  advance(ms: number): void {
    if (!(ms >= 0)) throw new RangeError(`Cannot advance the clock by ${ms} ms: must be 0 or more (use set to go back)`)
    const untilMs = this.#nowMs + ms
    for (let due = this.#nextDue(untilMs); due !== undefined; due = this.#nextDue(untilMs)) {
      this.#scheduled.delete(due)
      this.#nowMs = Math.max(this.#nowMs, due.atMs)
      due.fn()
    }
    this.#nowMs = untilMs
  }

  /** Sets the time without running anything, also backwards: for tests of clocks that misbehave. */
  set(nowMs: number): void {
    this.#nowMs = nowMs
  }

  #nextDue(untilMs: number): Scheduled | undefined {
    let next: Scheduled | undefined
    for (const scheduled of this.#scheduled) {
      if (scheduled.atMs > untilMs) continue
      if (
        next === undefined ||
        scheduled.atMs < next.atMs ||
        (scheduled.atMs === next.atMs && scheduled.order < next.order)
      ) {
        next = scheduled
      }
    }
    return next
  }
}
