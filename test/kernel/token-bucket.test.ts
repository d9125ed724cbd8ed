import { describe, expect, it } from 'vitest'
import type { TokenBucketConfig } from '../../src/config/types.ts'
import { take } from '../../src/kernel/rate.ts'
import { TokenBucket } from '../../src/kernel/token-bucket.ts'
import { describeRate, EPOCH_NOW_MS, takeAll } from './rate-contract.ts'

const bucket = (tokenLimit: number, tokensPerPeriod: number, replenishmentPeriodMs: number): TokenBucketConfig => ({
  algorithm: 'token-bucket',
  tokenLimit,
  tokensPerPeriod,
  replenishmentPeriodMs,
})

describeRate('token-bucket', [
  bucket(10, 3, 1000),
  bucket(1, 1, 1000),
  bucket(1, 7, 1000),
  bucket(5, 900, 7), // fills within a millisecond
  bucket(3, 29, 10), // may overflow between two milliseconds
  bucket(200, 1_000_000, 2_147_483_647),
])

describe('TokenBucket', () => {
  it('RAT-4 fills continuously: a token of a slow bucket is there when it is complete, not when the period ends', () => {
    const rate = new TokenBucket(bucket(4, 4, 1000), 0)
    takeAll(rate, 0)
    // Empty at 0, a token every 250 ms.
    expect([0, 249, 250, 499, 500, 999, 1000, 5000].map((nowMs) => rate.remaining(nowMs))).toEqual([
      0, 0, 1, 1, 2, 3, 4, 4,
    ])
    expect([0, 1, 2, 3, 4, 9].map((ahead) => rate.msUntilRoom(0, ahead))).toEqual([250, 500, 750, 1000, 1250, 2500])
    expect([0, 1, 2].map((ahead) => rate.msUntilRoom(400, ahead))).toEqual([0, 100, 350])
    expect(rate.cleanAtMs()).toBe(1000)
  })

  it('RAT-4 rounds each wait up once, from exact fractions', () => {
    const rate = new TokenBucket(bucket(10, 3, 1000), 0)
    takeAll(rate, 0)
    // 333 1/3, 666 2/3, 1000, 1333 1/3
    expect([0, 1, 2, 3].map((ahead) => rate.msUntilRoom(0, ahead))).toEqual([334, 667, 1000, 1334])
    take(rate, 334) // leaves 2 units of 1000
    expect(rate.msUntilRoom(334, 0)).toBe(333)
    take(rate, 667)
    expect(rate.msUntilRoom(667, 0)).toBe(333)
    take(rate, 1000)
    expect(rate.msUntilRoom(1000, 0)).toBe(334)
  })

  it('RAT-4 fills from its creation on, not from the first call', () => {
    const rate = new TokenBucket(bucket(1, 1, 1000), 0)
    take(rate, 700)
    expect(rate.msUntilRoom(700, 0)).toBe(1000)
    take(rate, 1700)
    expect(rate.remaining(2699)).toBe(0)
    expect(rate.remaining(2700)).toBe(1)
  })

  it('RAT-4 a bucket of one token loses what comes in while the token is complete, and says so in its waits', () => {
    const rate = new TokenBucket(bucket(1, 3, 1000), 0)
    take(rate, 0)
    expect([0, 1, 2].map((ahead) => rate.msUntilRoom(0, ahead))).toEqual([334, 668, 1002])
  })

  it('RAT-4 a period may bring more tokens than the bucket holds', () => {
    const rate = new TokenBucket(bucket(3, 50, 10), 0) // 5 tokens a millisecond, room for 3
    expect(takeAll(rate, 0)).toBe(3)
    expect([0, 2, 3, 5, 6].map((ahead) => rate.msUntilRoom(0, ahead))).toEqual([1, 1, 2, 2, 3])
    expect(takeAll(rate, 1)).toBe(3)
    expect(rate.cleanAtMs()).toBe(2)
  })

  it('RAT-1 does not drift: a million periods bring exactly their tokens, taken one by one when announced', () => {
    const config = bucket(2, 3, 1000)
    const rate = new TokenBucket(config, EPOCH_NOW_MS)
    const endMs = EPOCH_NOW_MS + 1_000_000 * 1000
    let [taken, nowMs] = [takeAll(rate, EPOCH_NOW_MS), EPOCH_NOW_MS]
    for (;;) {
      nowMs += rate.msUntilRoom(nowMs, 0)
      if (nowMs > endMs) break
      take(rate, nowMs)
      taken += 1
    }
    expect(taken).toBe(2 + 3_000_000)
  })

  it('RAT-1 does not drift when asked at odd instants either', () => {
    const rate = new TokenBucket(bucket(1000, 7, 1001), 0)
    let taken = 0
    for (let nowMs = 0; nowMs <= 1_000_000 * 1001; nowMs += 1009) taken += takeAll(rate, nowMs)
    const lastMs = Math.floor((1_000_000 * 1001) / 1009) * 1009
    expect(taken).toBe(1000 + Math.floor((lastMs * 7) / 1001))
  })

  it('RAT-1 is exact at the bounds of the configuration', () => {
    const slow = new TokenBucket(bucket(1_000_000, 1, 2_147_483_647), EPOCH_NOW_MS)
    take(slow, EPOCH_NOW_MS)
    expect(slow.cleanAtMs()).toBe(EPOCH_NOW_MS + 2_147_483_647)
    expect(takeAll(slow, EPOCH_NOW_MS)).toBe(999_999)
    expect(slow.cleanAtMs()).toBe(EPOCH_NOW_MS + 2_147_483_647_000_000)
    expect(slow.msUntilRoom(EPOCH_NOW_MS, 999_999)).toBe(2_147_483_647_000_000)
    expect(slow.msUntilRoom(EPOCH_NOW_MS + 2_147_483_646, 0)).toBe(1)

    const fast = new TokenBucket(bucket(1_000_000, 1_000_000, 1), 10 ** 15)
    expect(takeAll(fast, 10 ** 15)).toBe(1_000_000)
    expect(fast.msUntilRoom(10 ** 15, 999_999)).toBe(1)
    expect(fast.msUntilRoom(10 ** 15, 1_000_000)).toBe(2)
    expect(takeAll(fast, 10 ** 15 + 1)).toBe(1_000_000)

    const uneven = new TokenBucket(bucket(1_000_000, 999_983, 2_147_483_647), 10 ** 15)
    expect(takeAll(uneven, 10 ** 15)).toBe(1_000_000)
    for (const ahead of [0, 1, 17, 999_999]) {
      const exact = (BigInt(ahead + 1) * 2_147_483_647n + 999_982n) / 999_983n
      expect(uneven.msUntilRoom(10 ** 15, ahead)).toBe(Number(exact))
    }
  })
})
