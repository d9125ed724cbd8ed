import { describe, expect, it } from 'vitest'
import { AdmissionCore } from '../../src/admission-core.ts'
import type { ConfigInput, RateConfig } from '../../src/config/types.ts'
import { ManualClock } from '../../src/manual-clock.ts'
import { expectQuiet, type Held, setup } from '../support/core.ts'

const rates: readonly RateConfig[] = [
  { algorithm: 'token-bucket', tokenLimit: 9, tokensPerPeriod: 1, replenishmentPeriodMs: 1 },
  { algorithm: 'fixed-window', permitLimit: 9, windowMs: 1 },
  { algorithm: 'sliding-window', permitLimit: 9, windowMs: 10, segmentsPerWindow: 5 },
]
const queue = { maxQueuedCalls: 200_000, maxQueueDelayMs: 1000 }
const everything: ConfigInput = {
  queue,
  global: { concurrency: 9, rate: rates[0], partitions: { tenant: { concurrency: 1, rate: rates[1] } } },
  contracts: { '/a': { concurrency: 9, rate: rates[1], methods: { get: { concurrency: 9, rate: rates[2] } } } },
} as ConfigInput
const selectors = { tenant: () => 'acme' }
const call = { contract: '/a', method: 'get' }

describe('what costs nothing', () => {
  it('RUN-1 making a core reads no clock and starts no timer, whatever the configuration', () => {
    for (const config of [undefined, {}, { global: { concurrency: 1 } }, everything]) {
      const clock = new ManualClock()
      new AdmissionCore({ clock, config, selectors })
      expect([clock.reads, clock.timersStarted]).toEqual([0, 0])
    }
  })

  it('RUN-1 enabling, updating and planning start no timer while nothing waits', async () => {
    const { core, clock } = setup(undefined, { selectors })
    core.enable(everything)
    core.plan({})
    await core.update({ ...everything, queue: { ...queue, maxQueueDelayMs: 1 } })
    core.disable()
    core.enable(everything)
    expect(clock.timersStarted).toBe(0)
  })

  it('ADM-2 with concurrency only, an immediate permit and its release read no clock and start no timer', () => {
    const concurrency = { concurrency: 9 }
    const { core, clock, hold } = setup({
      queue,
      global: concurrency,
      contracts: { '/a': { ...concurrency, methods: { get: concurrency } } },
    })
    for (const each of [{}, call, { contract: '/a' }]) hold(each).release()
    expect([clock.reads, clock.timersStarted]).toEqual([0, 0])
    expectQuiet({ core, clock })
  })

  it('ADM-2 that holds just as well after many resizes and queue changes', async () => {
    const { core, clock, hold } = setup({ queue, global: { concurrency: 9 } })
    for (let update = 1; update <= 500; update += 1) {
      await core.update({ queue: { ...queue, maxQueuedCalls: update }, global: { concurrency: (update % 50) + 1 } })
    }
    const before = clock.reads
    hold().release()
    expect([clock.reads - before, clock.timersStarted]).toEqual([0, 0])
    expectQuiet({ core, clock })
  })

  it.each(rates.map((rate) => [rate.algorithm, rate] as const))(
    'RAT-1 with a %s an immediate permit reads the clock exactly once, and its release never',
    (_, rate) => {
      const { core, clock, hold } = setup({ queue, global: { concurrency: 9, rate } })
      const each = hold()
      expect([clock.reads, clock.timersStarted]).toEqual([1, 0])
      each.release()
      expect([clock.reads, clock.timersStarted]).toEqual([1, 0])
      expectQuiet({ core, clock })
    },
  )

  it('RAT-1 one reading is enough for any number of rates and partitions', () => {
    const { core, clock, hold } = setup(everything, { selectors })
    hold(call).release()
    expect([clock.reads, clock.timersStarted]).toEqual([1, 0])
    expectQuiet({ core, clock })
  })

  it('ADM-3 an immediate refusal is prebuilt: the same object every time, no clock, no timer', () => {
    const { core, clock } = setup({ global: { concurrency: 9 }, contracts: { '/a': { concurrency: 0 } } })
    const refusals = new Set(Array.from({ length: 10 }, () => core.admit(call)))
    expect(refusals.size).toBe(1)
    expect([clock.reads, clock.timersStarted]).toEqual([0, 0])
    expect(Object.isFrozen([...refusals][0])).toBe(true)
    expectQuiet({ core, clock })
  })

  it('ADM-3 the refusals of a drained, stopped or full server are prebuilt as well', () => {
    const { core, clock } = setup({ global: { concurrency: 0 }, queue: { ...queue, maxQueuedCalls: 1 } })
    const same = (refuse: () => unknown): void => expect(refuse()).toBe(refuse())
    void core.admit()
    same(() => core.admit())
    same(() => core.admit({ oneWay: true }))
    same(() => core.admit({ signal: AbortSignal.abort() }))
    core.drain()
    same(() => core.admit())
    void core.stop()
    same(() => core.admit())
    expectQuiet({ core, clock })
  })

  it('DRN-1 refusing while drained, and admitting while disabled, read no clock', () => {
    const { core, clock, hold } = setup(everything, { selectors })
    core.drain()
    hold(call)
    expect(clock.reads).toBe(0)
    core.resume()
    core.disable()
    const before = clock.reads
    hold(call)
    expect([clock.reads - before, clock.timersStarted]).toEqual([0, 0])
  })

  it('QUE-9 a waiter costs a bounded number of readings, whatever the depth', () => {
    const costs = [10, 1000, 20_000].map((depth) => {
      const { clock, core, hold } = setup({ queue, global: { concurrency: 1 } })
      const running = hold()
      for (let index = 0; index < depth; index += 1) void core.admit()
      const [reads, timers] = [clock.reads, clock.timersStarted]
      const leaving: Held = hold() // joins, leaves from the end, and one permit is handed on
      leaving.abort()
      running.release()
      return [clock.reads - reads, clock.timersStarted - timers]
    })
    expect(costs[1]).toEqual(costs[0])
    expect(costs[2]).toEqual(costs[0])
    expect(costs[0]?.[1]).toBe(0)
  })

  it('API-2 every call is counted once in the totals, whatever its answer', async () => {
    const { core, clock, hold, flush } = setup({ queue: { ...queue, maxQueuedCalls: 2 }, global: { concurrency: 1 } })
    const running = hold()
    const [granted, expiring] = [hold(), hold()]
    hold()
    hold({ oneWay: true })
    hold({ signal: AbortSignal.abort() })
    running.release()
    clock.advance(1000)
    await flush()
    core.drain()
    hold()
    expect(expiring.refusal?.reason).toBe('queue_timeout')
    const { totals } = core.snapshot()
    expect(totals.admitted).toBe(2)
    expect(totals.queued).toBe(2)
    const refused = Object.fromEntries(Object.entries(totals.refused).filter(([, count]) => count > 0))
    expect(refused).toEqual({ queue_calls: 1, one_way: 1, aborted: 1, queue_timeout: 1, draining: 1 })
    granted.release()
    expectQuiet({ core, clock })
  })
})
