import { describe, expect, it } from 'vitest'
import type { SlidingWindowConfig } from '../../src/config/types.ts'
import { take } from '../../src/kernel/rate.ts'
import { SlidingWindow } from '../../src/kernel/sliding-window.ts'
import { randomFrom } from '../support/random.ts'
import { describeRate, EPOCH_NOW_MS, takeAll } from './rate-contract.ts'

const sliding = (permitLimit: number, windowMs: number, segmentsPerWindow: number): SlidingWindowConfig => ({
  algorithm: 'sliding-window',
  permitLimit,
  windowMs,
  segmentsPerWindow,
})

describeRate('sliding-window', [
  sliding(5, 1000, 10),
  sliding(3, 1000, 1),
  sliding(4, 1000, 7), // segments of 142 and 143 ms
  sliding(6, 10, 1000), // segments shorter than a millisecond
  sliding(1, 1, 1),
  sliding(300, 2_147_483_647, 1000),
])

describe('SlidingWindow', () => {
  it('RAT-4 a permit comes back a window after the start of the segment it was taken in', () => {
    const rate = new SlidingWindow(sliding(4, 1000, 4), 0)
    take(rate, 100) // the grid: 100, 350, 600, 850, 1100
    take(rate, 349)
    take(rate, 350)
    take(rate, 1099)
    // 2 come back at 1100, 1 at 1350, 1 at 1850; then those again a window later.
    expect([1099, 1100, 1349, 1350, 1849, 1850].map((nowMs) => rate.remaining(nowMs))).toEqual([0, 2, 2, 3, 3, 4])
    expect([0, 1, 2, 3, 4, 5, 6, 7, 8].map((ahead) => rate.msUntilRoom(1099, ahead))).toEqual([
      1, 1, 251, 751, 1001, 1001, 1251, 1751, 2001,
    ])
    expect(rate.cleanAtMs()).toBe(1850)
  })

  it('RAT-4 what is free now goes first to those ahead, and comes back a window after this segment began', () => {
    const rate = new SlidingWindow(sliding(3, 1000, 4), 0)
    take(rate, 0)
    // At 600, in the segment from 500 on: two are free, the third comes back at 1000, the two at 1500.
    expect([0, 1, 2, 3, 4, 5, 6].map((ahead) => rate.msUntilRoom(600, ahead))).toEqual([
      0, 0, 400, 900, 900, 1400, 1900,
    ])
  })

  it('RAT-4 with one segment it is a fixed window', () => {
    const rate = new SlidingWindow(sliding(2, 1000, 1), 0)
    takeAll(rate, 700)
    expect(rate.msUntilRoom(1600, 0)).toBe(100)
    expect(takeAll(rate, 1700)).toBe(2)
    expect(rate.msUntilRoom(1701, 0)).toBe(999)
  })

  it('RAT-4 segments need not be equally long: their borders are rounded up from exact fractions', () => {
    const borders = [0, 334, 667, 1000, 1334, 1667, 2000]
    for (const [nth, borderMs] of borders.entries()) {
      for (const takenMs of [borderMs, (borders[nth + 1] ?? 2334) - 1]) {
        const rate = new SlidingWindow(sliding(2, 1000, 3), 0)
        take(rate, 0)
        take(rate, takenMs)
        expect(rate.cleanAtMs()).toBe(borderMs + 1000)
      }
    }
  })

  it('RAT-4 stays on the grid of the first take after idle time', () => {
    const rate = new SlidingWindow(sliding(2, 1000, 4), 0)
    take(rate, 130)
    takeAll(rate, 100_000) // in the segment from 99 880 on
    expect(rate.msUntilRoom(100_000, 0)).toBe(880)
  })

  it('RAT-4 no more than the limit within any window, whatever the pattern, but for the rest of one segment', () => {
    const seed = Math.floor(Math.random() * 2 ** 31)
    console.log(`sliding window seed ${seed}`)
    const random = randomFrom(seed)
    const rate = new SlidingWindow(sliding(20, 1000, 10), 0)
    const takes: number[] = []
    for (let nowMs = 0; nowMs < 60_000; nowMs += random(40)) {
      if (rate.msUntilRoom(nowMs, 0) > 0) continue
      take(rate, nowMs)
      takes.push(nowMs)
    }
    for (const [nth, takenMs] of takes.entries()) {
      const twentyLaterMs = takes[nth + 20] ?? Number.POSITIVE_INFINITY
      expect(twentyLaterMs - takenMs).toBeGreaterThan(1000 - 100)
    }
  })

  it('RAT-1 does not drift over a million windows', () => {
    const rate = new SlidingWindow(sliding(3, 997, 7), EPOCH_NOW_MS)
    for (const sinceMs of [0, 143, 500]) take(rate, EPOCH_NOW_MS + sinceMs)
    // Segments of 997/7 ms: these takes fall in those that start at 0, 143 and 428.
    let [taken, nowMs] = [0, EPOCH_NOW_MS + 500]
    const endMs = EPOCH_NOW_MS + 1_000_000 * 997 + 428
    while (nowMs < endMs) {
      nowMs += rate.msUntilRoom(nowMs, 0)
      take(rate, nowMs)
      taken += 1
    }
    expect(nowMs).toBe(endMs)
    expect(taken).toBe(3_000_000)
  })

  it('RAT-1 is exact at the bounds of the configuration', () => {
    const rate = new SlidingWindow(sliding(1_000_000, 2_147_483_647, 1000), 10 ** 15)
    expect(takeAll(rate, 10 ** 15)).toBe(1_000_000)
    expect(rate.msUntilRoom(10 ** 15 + 1, 0)).toBe(2_147_483_646)
    expect(rate.msUntilRoom(10 ** 15 + 1, 3_999_999)).toBe(2_147_483_646 + 3 * 2_147_483_647)
    const laterMs = 10 ** 15 + 999 * 2_147_483_647 + 2_147_483_646 // in the last segment of a window
    take(rate, laterMs)
    expect(rate.cleanAtMs()).toBe(10 ** 15 + 1000 * 2_147_483_647 + Math.ceil((999 * 2_147_483_647) / 1000))
  })

  it('RAT-1 keeps its count when the ring of segments grows, wraps and empties', () => {
    const rate = new SlidingWindow(sliding(1000, 1000, 1000), 0)
    for (let nowMs = 0; nowMs < 5000; nowMs += nowMs % 3000 < 1500 ? 1 : 7) {
      expect(rate.msUntilRoom(nowMs, 0)).toBe(0)
      take(rate, nowMs)
    }
    expect(rate.remaining(4999 + 1000)).toBe(1000)
    expect(takeAll(rate, 20_000)).toBe(1000)
  })
})
