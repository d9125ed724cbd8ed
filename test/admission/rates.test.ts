import { describe, expect, it } from 'vitest'
import type { ConfigInput, RateConfig } from '../../src/config/types.ts'
import { expectQuiet, type Held, lineup, setup } from '../support/core.ts'

const algorithms: readonly (readonly [RateConfig['algorithm'], RateConfig])[] = [
  ['token-bucket', { algorithm: 'token-bucket', tokenLimit: 2, tokensPerPeriod: 1, replenishmentPeriodMs: 100 }],
  ['fixed-window', { algorithm: 'fixed-window', permitLimit: 2, windowMs: 200 }],
  ['sliding-window', { algorithm: 'sliding-window', permitLimit: 2, windowMs: 200, segmentsPerWindow: 4 }],
]
const queue = { maxQueuedCalls: 100, maxQueueDelayMs: 1000 }
const once: RateConfig = { algorithm: 'fixed-window', permitLimit: 1, windowMs: 100 }

describe.each(algorithms)('a %s rate', (_, rate) => {
  it('RAT-2 tells a refused call the exact millisecond at which the next one is admitted', () => {
    const { core, clock, hold } = setup({ global: { rate } })
    clock.advance(7)
    hold().release()
    hold().release()
    clock.advance(13)
    const { refusal } = hold()
    const retryAfterMs = refusal?.retryAfterMs ?? Number.NaN
    expect(retryAfterMs).toBeGreaterThan(1)
    clock.advance(retryAfterMs - 1)
    expect(hold().refusal?.retryAfterMs).toBe(1)
    clock.advance(1)
    hold().release()
    expectQuiet({ core, clock })
  })

  it('RAT-1 runs no timer while nothing waits', () => {
    const { core, clock, hold } = setup({ queue, global: { rate } })
    for (let call = 0; call < 2; call += 1) hold().release()
    expect(clock.timersStarted).toBe(0)
    expectQuiet({ core, clock })
  })

  it('RAT-1 a clock that goes backwards grants nothing extra', () => {
    const { core, clock, hold } = setup({ global: { rate } })
    clock.advance(10_000)
    hold().release()
    hold().release()
    for (const nowMs of [9_000, 0, -5_000, 9_999]) {
      clock.set(nowMs)
      expect(hold().refusal?.reason).toBe('rate')
    }
    clock.set(10_200)
    hold().release()
    expectQuiet({ core, clock })
  })

  it('RAT-3 waiters share one timer and start in order, each as soon as there is a permit', async () => {
    const { core, clock, flush } = setup({ queue, global: { rate } })
    const { call, started } = lineup(core)
    const calls = Array.from({ length: 6 }, (_, index) => call(`${index}`))
    expect(clock.pending).toBe(1)
    let highest = 0
    for (let atMs = 0; atMs < 1000 && started.length < 6; atMs += 1) {
      clock.advance(1)
      await flush()
      highest = Math.max(highest, clock.pending)
    }
    expect(started).toEqual(['0', '1', '2', '3', '4', '5'])
    expect(highest).toBe(1)
    for (const each of calls) each.release()
    expectQuiet({ core, clock })
  })

  it('RAT-4 waiters ahead count: the nth waiter is told, and starts at, the instant of its permit', async () => {
    const instants: number[] = []
    const { core, clock, hold, flush } = setup({ queue, global: { rate } })
    const calls = Array.from({ length: 5 }, () => hold())
    const told = core.admit({ oneWay: true })
    expect(told).toMatchObject({ reason: 'one_way' })
    const seen = new Set<Held>()
    while (seen.size < 5) {
      await flush()
      for (const call of calls) {
        if (!call.started || seen.has(call)) continue
        seen.add(call)
        instants.push(clock.nowMs())
      }
      clock.advance(1)
    }
    const isBucket = rate.algorithm === 'token-bucket'
    expect(instants).toEqual(isBucket ? [0, 0, 100, 200, 300] : [0, 0, 200, 200, 400])
    for (const each of calls) each.release()
    expectQuiet({ core, clock })
  })

  it('QUE-6 a call whose permit comes after its deadline, or at it, is refused at once with the time to wait', () => {
    const firstMs = rate.algorithm === 'token-bucket' ? 100 : 200
    for (const [maxQueueDelayMs, waits] of [
      [firstMs - 1, false],
      [firstMs, false], // at its deadline it would expire first (QUE-12)
      [firstMs + 1, true],
    ] as const) {
      const { core, clock, hold } = setup({ queue: { ...queue, maxQueueDelayMs }, global: { rate } })
      hold().release()
      hold().release()
      const third = hold()
      expect(third.waiting).toBe(waits)
      if (!waits) {
        expect(third.refusal).toEqual({ kind: 'refused', reason: 'rate', scope: 'global', retryAfterMs: firstMs })
      }
      third.abort()
      expectQuiet({ core, clock })
    }
  })

  it('QUE-6 the waiters ahead are part of the time to wait', () => {
    const { core, clock, hold } = setup({ queue: { ...queue, maxQueueDelayMs: 250 }, global: { rate } })
    hold().release()
    hold().release()
    const waiting = [hold(), hold(), hold()]
    const { length } = waiting.filter((call) => call.waiting)
    expect(length).toBe(2)
    const told = waiting[2]?.refusal?.retryAfterMs
    expect(told).toBe(rate.algorithm === 'token-bucket' ? 300 : 400)
    for (const each of waiting) each.abort()
    expectQuiet({ core, clock })
  })

  it('QUE-5 a waiter that leaves gives its turn to the one behind it, and spends no permit', async () => {
    const { core, clock, hold, flush } = setup({ queue, global: { rate } })
    hold().release()
    hold().release()
    const [leaving, next] = [hold(), hold()]
    leaving.abort()
    clock.advance(rate.algorithm === 'token-bucket' ? 100 : 200)
    await flush()
    expect(next.started).toBe(true)
    next.release()
    expectQuiet({ core, clock })
  })
})

describe('rates among other limits', () => {
  it('ADM-1 a waiter spends no rate permit until it starts', () => {
    const { core, clock, hold } = setup({
      queue,
      global: { concurrency: 1, rate: { ...once, permitLimit: 5, windowMs: 1000 } },
    })
    const [running, waiting] = [hold(), hold()]
    expect(core.snapshot().rates).toMatchObject([{ remaining: 4, waiting: 1 }])
    waiting.abort()
    expect(core.snapshot().rates).toMatchObject([{ remaining: 4, waiting: 0 }])
    running.release()
    expectQuiet({ core, clock })
  })

  it('RAT-4 waiters that lack something else count as ahead in the time that a refused call is told', () => {
    const { core, clock, hold } = setup({
      queue: { ...queue, maxQueueDelayMs: 150 },
      global: { concurrency: 1, rate: once },
    })
    const running = hold()
    const waiting = hold()
    expect(waiting.waiting).toBe(true)
    expect(core.admit()).toEqual({ kind: 'refused', reason: 'rate', scope: 'global', retryAfterMs: 200 })
    waiting.abort()
    running.release()
    expectQuiet({ core, clock })
  })

  it('QUE-6 a rate of another scope than the one lacking is judged too', () => {
    const { core, clock, hold } = setup({
      queue,
      global: { concurrency: 1 },
      contracts: { '/a': { rate: { ...once, windowMs: 5000 } } },
    })
    const running = hold({ contract: '/a' })
    expect(hold({ contract: '/a' }).refusal).toEqual({
      kind: 'refused',
      reason: 'rate',
      scope: 'contract:/a',
      retryAfterMs: 5000,
    })
    running.release()
    expectQuiet({ core, clock })
  })

  it('ADM-5 a waiter that lacks a rate and a permit starts when the later of them comes', async () => {
    for (const releaseAtMs of [50, 150]) {
      const { core, clock, hold, flush } = setup({ queue, global: { concurrency: 1, rate: once } })
      const running = hold()
      const waiting = hold()
      clock.advance(releaseAtMs)
      running.release()
      await flush()
      expect(waiting.started).toBe(releaseAtMs === 150)
      clock.advance(100 - Math.min(100, releaseAtMs))
      await flush()
      expect(waiting.lease.waitedMs).toBe(Math.max(100, releaseAtMs))
      waiting.release()
      expectQuiet({ core, clock })
    }
  })

  it('ADM-4 a newcomer at the instant of a refill does not take the permit of the waiter, timer or not', async () => {
    const { core, clock, hold, flush } = setup({ queue, global: { rate: once } })
    hold().release()
    const waiting = hold()
    clock.set(100) // due, and no timer has run
    const newcomer = hold()
    await flush()
    expect([waiting.started, newcomer.waiting]).toEqual([true, true])
    newcomer.abort()
    waiting.release()
    clock.advance(0)
    expectQuiet({ core, clock })
  })

  it('RAT-1 a fixed window starts with the first call after creation, not at a round instant', () => {
    const { core, clock, hold } = setup({ global: { rate: once } })
    clock.advance(1033)
    hold().release()
    expect(hold().refusal?.retryAfterMs).toBe(100)
    clock.advance(99)
    expect(hold().refusal?.retryAfterMs).toBe(1)
    clock.advance(1)
    hold().release()
    expectQuiet({ core, clock })
  })

  it('RAT-4 a window stays on the grid of the first call, also after idle time', () => {
    const { core, clock, hold } = setup({ global: { rate: once } })
    clock.advance(33)
    hold().release() // the grid is 33, 133, 233, …
    clock.advance(537) // 570, in the window of 533
    hold().release()
    expect(hold().refusal?.retryAfterMs).toBe(63)
    expectQuiet({ core, clock })
  })

  it('WEB-4 rateStatus tells of the rate with the fewest permits left on the route', () => {
    const config: ConfigInput = {
      global: { rate: { ...once, permitLimit: 3 } },
      contracts: { '/a': { rate: { ...once, permitLimit: 2, windowMs: 400 } } },
    }
    const { core, clock, hold } = setup(config)
    hold({ contract: '/a' }).release()
    clock.advance(30)
    expect(core.rateStatus('/a')).toEqual({ scope: 'contract:/a', limit: 2, windowMs: 400, remaining: 1, resetMs: 370 })
    expect(core.rateStatus()).toEqual({ scope: 'global', limit: 3, windowMs: 100, remaining: 2, resetMs: 70 })
    core.disable()
    expect(core.rateStatus('/a')).toBeUndefined()
  })
})
