import { describe, expect, it } from 'vitest'
import type { ConfigInput } from '../../src/config/types.ts'
import { expectQuiet, setup } from '../support/core.ts'

const queue = { maxQueuedCalls: 10, maxQueueDelayMs: 100 }

describe('what the random programs have found', () => {
  it.each([
    ['', undefined],
    ['#', undefined],
    ['global#tenant:1:t,', 't'],
  ])(
    'ADM-7 a waiter with delivery key %j and one without, of tenant %j, do not mix up their places',
    async (client, tenant) => {
      const config: ConfigInput = {
        queue,
        global: { concurrency: 0, partitions: { tenant: { concurrency: 2 } } },
        contracts: { '/a': { delivery: { key: 'client', maxOpenBodies: 1 } } },
      }
      const key = (): undefined => undefined
      const { core, clock, hold, flush } = setup(config, { selectors: { tenant: key, client: key } })
      const calls = [
        hold({ contract: '/a', keys: { client } }),
        hold({ contract: '/a', keys: { tenant } }),
        hold({ contract: '/a', keys: { client } }),
      ]
      await core.update({ ...config, global: { ...config.global, concurrency: 3 } })
      await flush()
      expect(calls.map((call) => call.started)).toEqual([true, true, false])
      expect(core.snapshot().deliveries).toMatchObject([{ openBodies: 1 }])
      calls[0]?.release()
      await flush()
      for (const call of calls.slice(1)) call.release()
      expectQuiet({ core, clock })
      expect(core.snapshot().deliveries).toMatchObject([{ keys: 0, openBodies: 0 }])
    },
  )

  it('ADM-10 a timeout names the scope that is full, not one that was full when the call came', async () => {
    const config = (perMethod: number): ConfigInput => ({
      queue,
      global: { concurrency: 1 },
      contracts: { '/a': { methods: { m: { concurrency: perMethod } } } },
    })
    const { core, clock, hold, flush } = setup(config(1))
    const [running, waiting] = [hold({ contract: '/a', method: 'm' }), hold({ contract: '/a', method: 'm' })]
    await core.update(config(2))
    clock.advance(100)
    await flush()
    expect(waiting.refusal).toEqual({ kind: 'refused', reason: 'queue_timeout', scope: 'global' })
    running.release()
    expectQuiet({ core, clock })
  })

  it('QUE-11 RAT-1 the rest of a batch starts in the next turn, also while the clock is behind', async () => {
    const config = (concurrency: number): ConfigInput => ({
      queue: { maxQueuedCalls: 1000, maxQueueDelayMs: 60_000 },
      global: { concurrency },
    })
    const { core, clock, hold, flush } = setup(config(0))
    clock.advance(1000)
    const calls = Array.from({ length: 300 }, () => hold())
    clock.set(10)
    await core.update(config(1000))
    await flush()
    expect(calls.filter((call) => call.started)).toHaveLength(256)
    clock.advance(0)
    await flush()
    expect(calls.filter((call) => call.started)).toHaveLength(300)
    for (const call of calls) call.release()
    expectQuiet({ core, clock })
  })

  it('ADM-6 a pass counts although nobody has looked, because what the waiter lacks blocks all who wait', async () => {
    const both = { contract: '/a', method: 'm', keys: { tenant: 't' } }
    const [sameMethod, sameTenant] = [{ ...both, keys: {} }, { keys: both.keys }]
    const config: ConfigInput = {
      queue: { maxQueuedCalls: 10, maxQueueDelayMs: 60_000 },
      global: { partitions: { tenant: { concurrency: 1 } } },
      contracts: { '/a': { methods: { m: { concurrency: 1 } } } },
    }
    const { core, clock, hold, flush } = setup(config, { selectors: { tenant: () => undefined } })
    const blocker = hold(sameTenant)
    let running = hold(sameMethod)
    const waiting = hold(both)
    for (let count = 0; count < 64; count += 1) {
      running.release()
      running = hold(sameMethod)
      expect(running.immediate).toBe(true)
    }
    running.release()
    const heldUp = hold(sameMethod)
    expect(heldUp.waiting).toBe(true)
    blocker.release()
    await flush()
    expect([waiting.started, heldUp.started]).toEqual([true, false])
    waiting.release()
    await flush()
    heldUp.release()
    expectQuiet({ core, clock })
  })

  it('ADM-5 RAT-3 a call that lacks a rate behind a waiter that another scope blocks starts when the rate has room', async () => {
    const config = (perMethod: number): ConfigInput => ({
      queue,
      global: { concurrency: 5 },
      contracts: {
        '/a': {
          rate: { algorithm: 'fixed-window', permitLimit: 1, windowMs: 10 },
          methods: { m: { concurrency: perMethod } },
        },
      },
    })
    const { core, clock, hold, flush } = setup(config(1))
    const running = hold({ contract: '/a' })
    const blocked = hold({ contract: '/a', method: 'm' }) // lacks the rate
    await core.update(config(0)) // and now its method, too
    const elsewhere = hold()
    const waiting = hold({ contract: '/a' })
    expect([elsewhere.started, waiting.waiting]).toEqual([true, true])
    clock.advance(10)
    await flush()
    expect([blocked.waiting, waiting.started]).toEqual([true, true])
    blocked.abort()
    for (const call of [running, elsewhere, waiting]) call.release()
    expectQuiet({ core, clock })
  })

  it('ADM-5 ADM-6 a waiter for whom a rate permit is kept starts with the next permit, not with the one after it', async () => {
    const tenant = { keys: { tenant: 't' } }
    const [slow, fast] = [
      { contract: '/a', method: 'slow' },
      { contract: '/a', method: 'fast' },
    ]
    const { core, clock, hold, flush } = setup(
      {
        queue: { maxQueuedCalls: 10, maxQueueDelayMs: 60_000 },
        global: { partitions: { tenant: { concurrency: 1 } } },
        contracts: {
          '/a': {
            concurrency: 3,
            methods: { slow: { rate: { algorithm: 'fixed-window', permitLimit: 1, windowMs: 1000 } }, fast: {} },
          },
        },
      },
      { selectors: { tenant: () => undefined } },
    )
    const [blocker, filler] = [hold({ ...tenant, contract: '/a' }), hold(fast)]
    let running = hold(fast)
    const [waiting, other] = [hold({ ...slow, ...tenant }), hold({ ...fast, ...tenant })]
    for (let count = 0; count < 64; count += 1) {
      running.release()
      running = hold(count === 10 ? slow : fast) // which takes the only permit of this second
    }
    blocker.release()
    await flush()
    expect([waiting.waiting, other.waiting]).toEqual([true, true])
    clock.advance(1000)
    await flush()
    expect([waiting.started, other.waiting]).toEqual([true, true])
    for (const call of [filler, running, waiting]) call.release()
    await flush()
    other.release()
    expectQuiet({ core, clock })
  })
})
