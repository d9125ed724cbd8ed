import { describe, expect, it } from 'vitest'
import type { RateConfig } from '../../src/config/types.ts'
import { createRate } from '../../src/kernel/create-rate.ts'
import { permitsOf, windowMsOf } from '../../src/kernel/rate.ts'

describe('createRate', () => {
  it('RAT-1 makes the algorithm that the configuration names', () => {
    const bucket: RateConfig = {
      algorithm: 'token-bucket',
      tokenLimit: 5,
      tokensPerPeriod: 3,
      replenishmentPeriodMs: 1000,
    }
    const fixed: RateConfig = { algorithm: 'fixed-window', permitLimit: 6, windowMs: 2000 }
    const sliding: RateConfig = { algorithm: 'sliding-window', permitLimit: 7, windowMs: 3000, segmentsPerWindow: 3 }
    expect([bucket, fixed, sliding].map((config) => createRate(config, 0).config)).toEqual([bucket, fixed, sliding])
    expect([bucket, fixed, sliding].map((config) => createRate(config, 0).constructor.name)).toEqual([
      'TokenBucket',
      'FixedWindow',
      'SlidingWindow',
    ])
    expect([bucket, fixed, sliding].map(permitsOf)).toEqual([5, 6, 7])
    expect([bucket, fixed, sliding].map(windowMsOf)).toEqual([1667, 2000, 3000])
  })
})
