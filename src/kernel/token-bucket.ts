import { assert } from '../assert.ts'
import type { TokenBucketConfig } from '../config/types.ts'
import type { Rate } from './rate.ts'

/**
 * A bucket that starts full and fills all the time, so that no token ever waits for a period to end (RAT-4).
 *
 * Counted in units, so that whole milliseconds are exact: a token is `replenishmentPeriodMs` units, a millisecond
 * brings `tokensPerPeriod`. Always `0 ≤ missing ≤ tokenLimit · replenishmentPeriodMs`, which is below 2^53 at the
 * bounds of the configuration. What a full bucket cannot hold is lost; with `tokenLimit: 1` that is also what comes
 * in during the millisecond in which the token is complete: 3 tokens per 1000 ms are one per 334 ms.
 */
export class TokenBucket implements Rate {
  readonly config: TokenBucketConfig
  #newestMs: number // instant of the newest take, at first of the creation
  #missing: number // units that the bucket lacked at that instant

  constructor(config: TokenBucketConfig, nowMs: number) {
    this.config = config
    this.#newestMs = nowMs
    this.#missing = 0
  }

  msUntilRoom(nowMs: number, ahead: number): number {
    const { tokenLimit, tokensPerPeriod, replenishmentPeriodMs } = this.config
    const units = this.#unitsAt(nowMs)
    const lacking = (ahead + 1) * replenishmentPeriodMs - units
    if (lacking <= 0) return 0
    // After a millisecond in which every whole token was taken, the next brings one unit less than this beyond what fits.
    const spill = ahead === 0 ? 0 : tokensPerPeriod - (tokenLimit - 1) * replenishmentPeriodMs
    if (spill <= 1) return Math.ceil(lacking / tokensPerPeriod)
    return this.#msWhileSpilling(units, ahead, spill)
  }

  takeIfRoom(nowMs: number): boolean {
    assert(Number.isSafeInteger(nowMs), 'take at an instant that is not in whole milliseconds')
    const missing = this.#missingAt(nowMs) + this.config.replenishmentPeriodMs
    if (missing > unitsOfFull(this.config)) return false
    this.#missing = missing
    if (nowMs > this.#newestMs) this.#newestMs = nowMs
    return true
  }

  remaining(nowMs: number): number {
    return Math.floor(this.#unitsAt(nowMs) / this.config.replenishmentPeriodMs)
  }

  cleanAtMs(): number {
    return this.#newestMs + Math.ceil(this.#missing / this.config.tokensPerPeriod)
  }

  /** Units, whole: a product beyond 2^53 is rounded, but then the bucket has long been full. */
  #unitsAt(nowMs: number): number {
    return unitsOfFull(this.config) - this.#missingAt(nowMs)
  }

  #missingAt(nowMs: number): number {
    const elapsedMs = Math.max(0, nowMs - this.#newestMs)
    return Math.max(0, this.#missing - elapsedMs * this.config.tokensPerPeriod)
  }

  /**
   * The wait in a bucket that may overflow although each token is taken in the millisecond it is complete.
   *
   * Such a bucket gives `tokenLimit - 1` tokens a millisecond while the spill adds up, and once that makes a token,
   * all `tokenLimit` of them and is empty: a cycle that starts anew with nothing.
   */
  #msWhileSpilling(units: number, ahead: number, spill: number): number {
    const { tokenLimit, replenishmentPeriodMs } = this.config
    const perMs = tokenLimit - 1
    const tokens = Math.floor(units / replenishmentPeriodMs)
    const wanted = ahead + 1 - tokens
    const firstMs = Math.ceil((replenishmentPeriodMs - (units - tokens * replenishmentPeriodMs)) / spill)
    const afterFirst = wanted - (firstMs * perMs + 1)
    if (afterFirst <= 0) return Math.min(firstMs, Math.ceil(wanted / perMs))
    const cycleMs = Math.ceil(replenishmentPeriodMs / spill)
    const cycleTokens = cycleMs * perMs + 1
    const cycles = Math.floor((afterFirst - 1) / cycleTokens)
    const rest = afterFirst - cycles * cycleTokens // ≥ 1, ≤ cycleTokens
    return firstMs + cycles * cycleMs + Math.min(cycleMs, Math.ceil(rest / perMs))
  }
}

// No private getter: on V8 it is called through the runtime each time (`core.rate`).
function unitsOfFull({ tokenLimit, replenishmentPeriodMs }: TokenBucketConfig): number {
  return tokenLimit * replenishmentPeriodMs
}
