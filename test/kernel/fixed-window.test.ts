import { describe, expect, it } from 'vitest'
import type { FixedWindowConfig } from '../../src/config/types.ts'
import { FixedWindow } from '../../src/kernel/fixed-window.ts'
import { take } from '../../src/kernel/rate.ts'
import { describeRate, EPOCH_NOW_MS, takeAll } from './rate-contract.ts'

const window = (permitLimit: number, windowMs: number): FixedWindowConfig => ({
  algorithm: 'fixed-window',
  permitLimit,
  windowMs,
})

describeRate('fixed-window', [window(3, 1000), window(1, 1), window(7, 997), window(1000, 2_147_483_647)])

describe('FixedWindow', () => {
  it('RAT-1 the first window starts with the first take, not with the creation or a question', () => {
    const rate = new FixedWindow(window(2, 1000), 0)
    expect(rate.msUntilRoom(300, 2)).toBe(1000)
    expect(rate.msUntilRoom(650, 5)).toBe(2000)
    takeAll(rate, 700)
    expect(rate.msUntilRoom(700, 0)).toBe(1000)
    expect(rate.remaining(1699)).toBe(0)
    expect(rate.remaining(1700)).toBe(2)
  })

  it('RAT-4 windows stay on the grid of the first take, also after idle time', () => {
    const rate = new FixedWindow(window(2, 1000), 0)
    take(rate, 700)
    expect(takeAll(rate, 5600)).toBe(2) // the window from 4700 to 5700
    expect(rate.msUntilRoom(5600, 0)).toBe(100)
    expect(rate.cleanAtMs()).toBe(5700)
    expect(takeAll(rate, 5700)).toBe(2)
    expect(rate.msUntilRoom(5700, 0)).toBe(1000)
  })

  it('RAT-4 counts those ahead over as many windows as they need', () => {
    const rate = new FixedWindow(window(3, 1000), 0)
    take(rate, 0)
    expect([0, 1, 2, 4, 5, 7, 8, 300].map((ahead) => rate.msUntilRoom(400, ahead))).toEqual([
      0,
      0,
      600,
      600,
      1600,
      1600,
      2600,
      100_600 - 1000,
    ])
    expect([0, 2, 3, 5, 6].map((ahead) => rate.msUntilRoom(1400, ahead))).toEqual([0, 0, 600, 600, 1600])
  })

  it('RAT-1 a take in the last millisecond counts in the old window, one at the border in the new', () => {
    const rate = new FixedWindow(window(2, 1000), 0)
    take(rate, 0)
    take(rate, 999)
    expect(rate.msUntilRoom(999, 0)).toBe(1)
    expect(takeAll(rate, 1000)).toBe(2)
    expect(rate.cleanAtMs()).toBe(2000)
  })

  it('RAT-1 does not drift over a million windows', () => {
    const rate = new FixedWindow(window(3, 997), EPOCH_NOW_MS)
    let [taken, nowMs] = [0, EPOCH_NOW_MS]
    while (nowMs < EPOCH_NOW_MS + 1_000_000 * 997) {
      taken += takeAll(rate, nowMs)
      nowMs += rate.msUntilRoom(nowMs, 0)
    }
    expect(nowMs).toBe(EPOCH_NOW_MS + 1_000_000 * 997)
    expect(taken).toBe(3_000_000)
  })

  it('RAT-1 is exact at the bounds of the configuration', () => {
    const rate = new FixedWindow(window(1_000_000, 2_147_483_647), 10 ** 15)
    expect(takeAll(rate, 10 ** 15)).toBe(1_000_000)
    expect(rate.msUntilRoom(10 ** 15 + 1, 999_999)).toBe(2_147_483_646)
    expect(rate.msUntilRoom(10 ** 15 + 1, 3_000_000)).toBe(2_147_483_646 + 3 * 2_147_483_647)
    const short = new FixedWindow(window(1, 1), -(10 ** 15))
    take(short, -(10 ** 15))
    take(short, 10 ** 15)
    expect(short.msUntilRoom(10 ** 15, 0)).toBe(1)
  })
})
