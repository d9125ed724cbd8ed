import type { FixedWindowConfig, RateConfig, SlidingWindowConfig, TokenBucketConfig } from '../../src/config/types.ts'
import type { Random } from '../support/random.ts'

/** A rate as the specification tells it, slow and plain: time moves one millisecond after the other. */
export abstract class Oracle {
  newestMs: number // instant of the newest take, at first of the creation

  constructor(nowMs: number) {
    this.newestMs = nowMs
  }

  /** Permits free at an instant, which counts as the newest take's if it is older. */
  abstract free(nowMs: number): number
  abstract isClean(nowMs: number): boolean
  abstract clone(): Oracle
  protected abstract spend(atMs: number): void

  take(nowMs: number): void {
    const atMs = Math.max(nowMs, this.newestMs)
    if (this.free(atMs) === 0) throw new Error(`no room at ${atMs}`)
    this.spend(atMs)
    this.newestMs = atMs
  }

  /** Waits with everybody ahead, each of whom takes a permit in the millisecond in which there is one. */
  msUntilRoom(nowMs: number, ahead: number): number {
    const future = this.clone()
    const startMs = Math.max(nowMs, this.newestMs)
    for (let atMs = startMs, left = ahead; ; atMs += 1) {
      for (let free = future.free(atMs); free > 0; free -= 1) {
        if (left === 0) return atMs - startMs
        future.take(atMs)
        left -= 1
      }
    }
  }

  /** The first clean instant that is neither before `nowMs` nor before the newest take. */
  cleanAtMs(nowMs: number): number {
    let atMs = Math.max(nowMs, this.newestMs)
    while (!this.isClean(atMs)) atMs += 1
    return atMs
  }
}

class BucketOracle extends Oracle {
  readonly config: TokenBucketConfig
  units: number // at the newest take

  constructor(config: TokenBucketConfig, nowMs: number) {
    super(nowMs)
    this.config = config
    this.units = this.full
  }

  get full(): number {
    return this.config.tokenLimit * this.config.replenishmentPeriodMs
  }

  clone(): Oracle {
    const clone = new BucketOracle(this.config, this.newestMs)
    clone.units = this.units
    return clone
  }

  unitsAt(nowMs: number): number {
    let units = this.units
    for (let atMs = this.newestMs; atMs < nowMs && units < this.full; atMs += 1) {
      units = Math.min(this.full, units + this.config.tokensPerPeriod)
    }
    return units
  }

  free(nowMs: number): number {
    return Math.floor(this.unitsAt(nowMs) / this.config.replenishmentPeriodMs)
  }

  isClean(nowMs: number): boolean {
    return this.unitsAt(nowMs) === this.full
  }

  protected spend(atMs: number): void {
    this.units = this.unitsAt(atMs) - this.config.replenishmentPeriodMs
  }
}

class WindowOracle extends Oracle {
  readonly config: FixedWindowConfig | SlidingWindowConfig
  firstMs: number | undefined // instant of the first take
  takes: number[] // the segment of each take that can still count

  constructor(config: FixedWindowConfig | SlidingWindowConfig, nowMs: number) {
    super(nowMs)
    this.config = config
    this.firstMs = undefined
    this.takes = []
  }

  clone(): Oracle {
    const clone = new WindowOracle(this.config, this.newestMs)
    clone.firstMs = this.firstMs
    clone.takes = [...this.takes]
    return clone
  }

  get segments(): number {
    return this.config.algorithm === 'sliding-window' ? this.config.segmentsPerWindow : 1
  }

  /** The newest that has started, of segments that start at ceil(i · windowMs / segments) after the first take. */
  segmentOf(atMs: number): number {
    const sinceFirst = BigInt(atMs) - BigInt(this.firstMs ?? atMs)
    return Number((sinceFirst * BigInt(this.segments)) / BigInt(this.config.windowMs))
  }

  free(nowMs: number): number {
    const newest = this.segmentOf(Math.max(nowMs, this.newestMs))
    return this.config.permitLimit - this.takes.filter((segment) => segment + this.segments > newest).length
  }

  isClean(nowMs: number): boolean {
    return this.free(nowMs) === this.config.permitLimit
  }

  protected spend(atMs: number): void {
    this.firstMs ??= atMs
    const newest = this.segmentOf(atMs)
    this.takes = [...this.takes.filter((segment) => segment + this.segments > newest), newest]
  }
}

export function oracleOf(config: RateConfig, nowMs: number): Oracle {
  return config.algorithm === 'token-bucket' ? new BucketOracle(config, nowMs) : new WindowOracle(config, nowMs)
}

/** A configuration small enough to be played millisecond by millisecond, of odd proportions. */
export function randomConfig(algorithm: RateConfig['algorithm'], random: Random): RateConfig {
  const windowMs = 1 + random(random(2) === 0 ? 6 : 60)
  switch (algorithm) {
    case 'token-bucket':
      return {
        algorithm,
        tokenLimit: 1 + random(random(2) === 0 ? 3 : 10),
        tokensPerPeriod: 1 + random(random(2) === 0 ? 4 : 3 * windowMs),
        replenishmentPeriodMs: windowMs,
      }
    case 'fixed-window':
      return { algorithm, permitLimit: 1 + random(6), windowMs }
    case 'sliding-window':
      return { algorithm, permitLimit: 1 + random(8), windowMs, segmentsPerWindow: 1 + random(14) }
  }
}
