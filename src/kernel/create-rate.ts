import { unreachable } from '../assert.ts'
import type { RateConfig } from '../config/types.ts'
import { FixedWindow } from './fixed-window.ts'
import type { Rate } from './rate.ts'
import { SlidingWindow } from './sliding-window.ts'
import { TokenBucket } from './token-bucket.ts'

/** A fresh state for a rate: the bucket is full, and a window's grid starts with the first take (RAT-1). */
export function createRate(config: RateConfig, nowMs: number): Rate {
  switch (config.algorithm) {
    case 'token-bucket':
      return new TokenBucket(config, nowMs)
    case 'fixed-window':
      return new FixedWindow(config, nowMs)
    case 'sliding-window':
      return new SlidingWindow(config, nowMs)
    default:
      return unreachable(config)
  }
}
