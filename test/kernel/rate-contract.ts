import { describe, expect, it } from 'vitest'
import type { RateConfig } from '../../src/config/types.ts'
import { createRate } from '../../src/kernel/create-rate.ts'
import { permitsOf, type Rate, take, windowMsOf } from '../../src/kernel/rate.ts'
import { type Random, randomFrom } from '../support/random.ts'
import { oracleOf, randomConfig } from './rate-oracle.ts'

/** Milliseconds since 1970, as workerd's clock gives them. */
export const EPOCH_NOW_MS = 1_800_000_000_000

const YEAR_MS = 365 * 86_400_000

/** Takes all that is there; says how many permits that were. */
export function takeAll(rate: Rate, nowMs: number): number {
  let taken = 0
  for (; rate.msUntilRoom(nowMs, 0) === 0; taken += 1) take(rate, nowMs)
  return taken
}

/** What every algorithm owes, on the given configurations (which also say where the edges of that algorithm are). */
export function describeRate(algorithm: RateConfig['algorithm'], configs: readonly RateConfig[]): void {
  describe(`every rate: ${algorithm}`, () => {
    for (const config of configs) describe(JSON.stringify(config), () => forConfig(config))
    againstOracle(algorithm)
  })
}

function forConfig(config: RateConfig): void {
  const permits = permitsOf(config)

  for (const startMs of [0, -5, EPOCH_NOW_MS, 10 ** 15]) {
    it(`RAT-1 a new state created at ${startMs} gives exactly its limit at once, and is clean before the first take`, () => {
      const rate = createRate(config, startMs)
      expect(rate.config).toBe(config)
      expect(rate.remaining(startMs)).toBe(permits)
      expect(rate.cleanAtMs()).toBeLessThanOrEqual(startMs)
      expect(rate.msUntilRoom(startMs, permits - 1)).toBe(0)
      expect(rate.msUntilRoom(startMs, permits)).toBeGreaterThan(0)
      expect(takeAll(rate, startMs)).toBe(permits)
      expect(rate.remaining(startMs)).toBe(0)
      expect(() => take(rate, startMs)).toThrow(/invariant/)
    })

    it(`RAT-2 from ${startMs} on there is no room a millisecond before the announced instant, and room at it`, () => {
      const rate = createRate(config, startMs)
      let nowMs = startMs
      for (let round = 0; round < 50; round += 1) {
        takeAll(rate, nowMs)
        const waitMs = rate.msUntilRoom(nowMs, 0)
        expect(Number.isSafeInteger(waitMs)).toBe(true)
        expect(waitMs).toBeGreaterThan(0)
        expect(rate.msUntilRoom(nowMs + waitMs - 1, 0)).toBe(1)
        expect(rate.remaining(nowMs + waitMs - 1)).toBe(0)
        nowMs += waitMs
        expect(rate.remaining(nowMs)).toBeGreaterThan(0)
      }
    })
  }

  it('PAR-1 a state is clean when announced, and not a millisecond earlier', () => {
    const rate = createRate(config, EPOCH_NOW_MS)
    take(rate, EPOCH_NOW_MS + 3)
    const cleanAtMs = rate.cleanAtMs()
    expect(cleanAtMs).toBeGreaterThan(EPOCH_NOW_MS + 3)
    expect(rate.remaining(cleanAtMs - 1)).toBe(permits - 1)
    expect(rate.remaining(cleanAtMs)).toBe(permits)
  })

  it('PAR-1 a used-up state is clean after the time in which its permits come back', () => {
    const rate = createRate(config, 0)
    takeAll(rate, 0)
    expect(rate.cleanAtMs()).toBe(windowMsOf(config))
  })

  it('RAT-1 a state that was idle for years gives its limit once, and then waits as ever', () => {
    const rate = createRate(config, 0)
    takeAll(rate, 0)
    const laterMs = 60 * YEAR_MS + 1
    expect(rate.remaining(laterMs)).toBe(permits)
    expect(takeAll(rate, laterMs)).toBe(permits)
    const waitMs = rate.msUntilRoom(laterMs, 0)
    expect(waitMs).toBeGreaterThan(0)
    expect(waitMs).toBeLessThanOrEqual(windowMsOf(config))
  })

  it('RAT-1 a clock that goes backwards grants nothing extra: an older instant counts as that of the newest take', () => {
    const rate = createRate(config, 1000)
    expect(rate.remaining(-YEAR_MS)).toBe(permits)
    take(rate, 2000)
    takeAll(rate, 2000)
    for (const olderMs of [1999, 1000, 0, -YEAR_MS]) {
      expect(rate.remaining(olderMs)).toBe(0)
      expect(rate.msUntilRoom(olderMs, 0)).toBe(rate.msUntilRoom(2000, 0))
      expect(rate.msUntilRoom(olderMs, permits + 3)).toBe(rate.msUntilRoom(2000, permits + 3))
    }
  })

  it('RAT-1 a take under an older instant counts like one at the newest take, and does not stall what comes after', () => {
    if (permits < 2) return
    const [back, straight] = [createRate(config, 0), createRate(config, 0)]
    take(back, 5000)
    take(back, 10)
    take(straight, 5000)
    take(straight, 5000)
    for (const nowMs of [5000, 5001, 5400, 6000, 7000, 99_999]) {
      expect(back.remaining(nowMs)).toBe(straight.remaining(nowMs))
      expect(back.msUntilRoom(nowMs, permits)).toBe(straight.msUntilRoom(nowMs, permits))
      expect(back.cleanAtMs()).toBe(straight.cleanAtMs())
    }
  })

  it('ADM-1 asking changes nothing, however often and about whatever instant, nor does trying to take without room', () => {
    const seed = 20_260_101
    const random = randomFrom(seed)
    const [asked, left] = [createRate(config, 0), createRate(config, 0)]
    let nowMs = 0
    for (let step = 0; step < 300; step += 1) {
      nowMs += random(Math.ceil(windowMsOf(config) / 3) + 1)
      for (let asks = random(4); asks > 0; asks -= 1) {
        const aboutMs = nowMs + random(3 * windowMsOf(config)) * (random(2) === 0 ? -1 : 1)
        asked.msUntilRoom(aboutMs, random(20))
        asked.remaining(aboutMs)
        asked.cleanAtMs()
      }
      expect(asked.msUntilRoom(nowMs, 3)).toBe(left.msUntilRoom(nowMs, 3))
      const hasRoom = left.msUntilRoom(nowMs, 0) === 0
      expect(asked.takeIfRoom(nowMs)).toBe(hasRoom)
      if (hasRoom) take(left, nowMs)
    }
    expect(asked.cleanAtMs()).toBe(left.cleanAtMs())
  })

  it('RAT-4 the wait with others ahead is that of taking each permit as soon as there is one', () => {
    const rate = createRate(config, EPOCH_NOW_MS)
    take(rate, EPOCH_NOW_MS)
    const startMs = EPOCH_NOW_MS + Math.floor(windowMsOf(config) / 3)
    const ahead = Math.min(3 * permits + 1, 5000)
    const expected = Array.from({ length: ahead }, (_, n) => rate.msUntilRoom(startMs, n))
    let nowMs = startMs
    for (const waitMs of expected) {
      nowMs += rate.msUntilRoom(nowMs, 0)
      expect(nowMs - startMs).toBe(waitMs)
      take(rate, nowMs)
    }
  })

  it('RAT-4 a take that is not in whole milliseconds is a mistake of ours', () => {
    const rate = createRate(config, 0)
    for (const nowMs of [0.5, Number.NaN, Number.POSITIVE_INFINITY])
      expect(() => take(rate, nowMs)).toThrow(/invariant/)
  })
}

function againstOracle(algorithm: RateConfig['algorithm']): void {
  it('RAT-1 RAT-2 RAT-4 PAR-1 agrees with a simulation, millisecond by millisecond, on random rates and calls', () => {
    const seed = Math.floor(Math.random() * 2 ** 31)
    console.log(`${algorithm} seed ${seed}`)
    const random = randomFrom(seed)
    for (let round = 0; round < 150; round += 1) {
      const config = randomConfig(algorithm, random)
      const startMs = [0, -1000, EPOCH_NOW_MS, 10 ** 15][random(4)] ?? 0
      playAgainstOracle(config, startMs, random, `seed ${seed}, round ${round}, ${JSON.stringify(config)}`)
    }
  })
}

function playAgainstOracle(config: RateConfig, startMs: number, random: Random, label: string): void {
  const [rate, oracle] = [createRate(config, startMs), oracleOf(config, startMs)]
  let nowMs = startMs
  for (let step = 0; step < 40; step += 1) {
    nowMs += [0, 0, 1, random(10), random(100), -random(30)][random(6)] ?? 0
    if (random(8) === 0) nowMs += rate.msUntilRoom(nowMs, 0)
    const ahead = random(21)
    const got = {
      remaining: rate.remaining(nowMs),
      waitMs: rate.msUntilRoom(nowMs, 0),
      waitBehindMs: rate.msUntilRoom(nowMs, ahead),
      cleanAtMs: Math.max(rate.cleanAtMs(), nowMs, oracle.newestMs),
    }
    expect(got, `${label}, step ${step}, ${ahead} ahead`).toEqual({
      remaining: oracle.free(nowMs),
      waitMs: oracle.msUntilRoom(nowMs, 0),
      waitBehindMs: oracle.msUntilRoom(nowMs, ahead),
      cleanAtMs: oracle.cleanAtMs(nowMs),
    })
    for (let takes = random(3); takes > 0 && rate.msUntilRoom(nowMs, 0) === 0; takes -= 1) {
      take(rate, nowMs)
      oracle.take(nowMs)
    }
  }
}
