import type { RateConfig } from '../../src/config/types.ts'

/**
 * A rate as the specification tells it, by the instants of its grants: no formula, time is walked millisecond by
 * millisecond (RAT-1, RAT-4).
 */
export class NaiveRate {
  readonly config: RateConfig
  grants: number[] // instants, oldest first
  #bucketMs: number // instant up to which the bucket has been filled
  #units: number // of which a token is `replenishmentPeriodMs`

  constructor(config: RateConfig, nowMs: number) {
    this.config = config
    this.grants = []
    this.#bucketMs = nowMs
    this.#units = config.algorithm === 'token-bucket' ? config.tokenLimit * config.replenishmentPeriodMs : 0
  }

  get permits(): number {
    return this.config.algorithm === 'token-bucket' ? this.config.tokenLimit : this.config.permitLimit
  }

  free(nowMs: number): number {
    const { config } = this
    if (config.algorithm === 'token-bucket') return Math.floor(this.#unitsAt(nowMs) / config.replenishmentPeriodMs)
    const now = this.#segmentOf(nowMs)
    const segments = this.#segments
    return config.permitLimit - this.grants.filter((atMs) => this.#segmentOf(atMs) + segments > now).length
  }

  take(nowMs: number): void {
    if (this.free(nowMs) < 1) throw new Error(`The model grants without room at ${nowMs}`)
    if (this.config.algorithm === 'token-bucket') {
      this.#units = this.#unitsAt(nowMs) - this.config.replenishmentPeriodMs
      this.#bucketMs = nowMs
    }
    this.grants.push(nowMs)
  }

  /** Everybody ahead takes a permit in the millisecond in which there is one. */
  msUntilRoom(nowMs: number, ahead: number): number {
    const future = this.#copy()
    for (let atMs = nowMs, left = ahead; ; atMs += 1) {
      while (future.free(atMs) > 0) {
        if (left === 0) return atMs - nowMs
        future.take(atMs)
        left -= 1
      }
    }
  }

  /** The first instant, not before the newest grant, at which everything is free again. */
  cleanAtMs(): number {
    let atMs = this.grants.at(-1) ?? this.#bucketMs
    while (!this.#isClean(atMs)) atMs += 1
    return atMs
  }

  #isClean(nowMs: number): boolean {
    if (this.config.algorithm !== 'token-bucket') return this.free(nowMs) === this.permits
    return this.#unitsAt(nowMs) === this.permits * this.config.replenishmentPeriodMs
  }

  get #windowMs(): number {
    return this.config.algorithm === 'token-bucket' ? 0 : this.config.windowMs
  }

  get #segments(): number {
    return this.config.algorithm === 'sliding-window' ? this.config.segmentsPerWindow : 1
  }

  /** Segment `n` starts at ⌈n · windowMs / segments⌉ after the first grant. */
  #segmentOf(atMs: number): number {
    const sinceMs = atMs - (this.grants[0] ?? atMs)
    return Math.floor((sinceMs * this.#segments) / this.#windowMs)
  }

  #unitsAt(nowMs: number): number {
    const { config } = this
    if (config.algorithm !== 'token-bucket') return 0
    const full = config.tokenLimit * config.replenishmentPeriodMs
    let units = this.#units
    for (let atMs = this.#bucketMs; atMs < nowMs && units < full; atMs += 1) {
      units = Math.min(full, units + config.tokensPerPeriod)
    }
    return units
  }

  #copy(): NaiveRate {
    const copy = new NaiveRate(this.config, this.#bucketMs)
    copy.#units = this.#units
    // Older ones than two windows do not count any more, but the first is the origin of the grid.
    copy.grants = this.grants.slice()
    return copy
  }
}
