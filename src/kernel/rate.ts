import { assert, unreachable } from '../assert.ts'
import type { RateConfig } from '../config/types.ts'

/**
 * The rate state of one scope or one partition entry: "how long until room?", and its answers.
 *
 * All instants and durations are whole milliseconds, exact up to 2^53; the state has no clock and no timer. Time never
 * goes back: an instant older than the newest take (or the creation) counts as that one (RAT-1, RAT-4), so a clock that
 * jumps back grants nothing extra. Only `takeIfRoom` moves time and changes anything: how often a state was asked, and about
 * which instants, makes no difference.
 */
export interface Rate {
  readonly config: RateConfig
  /**
   * The least number of milliseconds after which one permit can be taken when `ahead` permits go to others first,
   * each as soon as there is one (RAT-4); 0 is now.
   *
   * Asking spends nothing, so a refused call spends nothing anywhere (ADM-1). O(1) for buckets and fixed windows,
   * O(segmentsPerWindow) for sliding windows. `ahead` is a whole number ≥ 0, up to 4 million: beyond that the longest
   * waits are no longer exact.
   */
  msUntilRoom(nowMs: number, ahead: number): number
  /** Takes one permit, or nothing when `msUntilRoom(nowMs, 0)` is not 0; asking and taking apart is twice the work (`core.rate`). */
  takeIfRoom(nowMs: number): boolean
  /** Permits that could be taken at `nowMs`, ≥ 0. */
  remaining(nowMs: number): number
  /**
   * From which instant on the state is as good as new, if nothing more is taken: full bucket, empty window. In the past
   * when it already is; the same answer until the next take. Removing a state before that instant would forget debt
   * (PAR-1, RAT-4).
   */
  cleanAtMs(): number
}

/** Takes one permit where the caller has seen room in this same turn. */
export function take(rate: Rate, nowMs: number): void {
  assert(rate.takeIfRoom(nowMs), 'a permit of a rate is taken without room')
}

/** The permits of a full, unused rate: `tokenLimit` or `permitLimit`. */
export function permitsOf(config: RateConfig): number {
  switch (config.algorithm) {
    case 'token-bucket':
      return config.tokenLimit
    case 'fixed-window':
    case 'sliding-window':
      return config.permitLimit
    default:
      return unreachable(config)
  }
}

/** The time in which that many permits come back, whole milliseconds: the window, or the time to fill the bucket. */
export function windowMsOf(config: RateConfig): number {
  switch (config.algorithm) {
    case 'token-bucket':
      return Math.ceil((config.tokenLimit * config.replenishmentPeriodMs) / config.tokensPerPeriod)
    case 'fixed-window':
    case 'sliding-window':
      return config.windowMs
    default:
      return unreachable(config)
  }
}
