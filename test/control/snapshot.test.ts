import { describe, expect, it } from 'vitest'
import type { ConfigInput } from '../../src/config/types.ts'
import { expectQuiet, setup } from '../support/core.ts'

const rate = { algorithm: 'token-bucket', tokenLimit: 10, tokensPerPeriod: 5, replenishmentPeriodMs: 1000 } as const
const config: ConfigInput = {
  queue: { maxQueuedCalls: 9 },
  global: { concurrency: 3, rate, partitions: { tenant: { concurrency: 2 } } },
  contracts: {
    '/orders': {
      concurrency: 2,
      methods: {
        'POST /orders': { concurrency: 1 },
        'GET /orders': { rate: { algorithm: 'fixed-window', permitLimit: 7, windowMs: 300 } },
      },
    },
  },
}
const selectors = { tenant: () => 'acme' }
const post = { contract: '/orders', method: 'POST /orders' }

describe('snapshot', () => {
  it('API-4 shows everything, plain and JSON-ready', async () => {
    const { core, clock, hold, flush } = setup(config, { selectors })
    const [running, waiting] = [hold(post), hold({ ...post, bytes: 11 })]
    clock.advance(20)
    const snapshot = core.snapshot()
    expect(JSON.parse(JSON.stringify(snapshot))).toEqual(snapshot)
    expect(snapshot).toEqual({
      state: 'enabled',
      draining: false,
      announcing: false,
      generation: 1,
      config: core.config,
      active: 1,
      queued: { calls: 1, bytes: 11, oldestWaitMs: 20 },
      scopes: [
        { scope: 'global', limit: 3, active: 1, waiting: 1 },
        { scope: 'contract:/orders', contract: '/orders', limit: 2, active: 1, waiting: 1 },
        { scope: 'method:/orders POST /orders', ...post, limit: 1, active: 1, waiting: 1 },
      ],
      rates: [
        {
          scope: 'global',
          current: true,
          algorithm: 'token-bucket',
          limit: 10,
          windowMs: 2000,
          remaining: 9,
          waiting: 1,
        },
        {
          scope: 'method:/orders GET /orders',
          contract: '/orders',
          method: 'GET /orders',
          current: true,
          algorithm: 'fixed-window',
          limit: 7,
          windowMs: 300,
          remaining: 7,
          waiting: 0,
        },
      ],
      partitions: [
        {
          scope: 'global#tenant',
          selector: 'tenant',
          current: true,
          partitions: 1,
          maxPartitions: 10_000,
          limit: 2,
          active: 1,
          waiting: 1,
        },
      ],
      deliveries: [],
      generations: [{ generation: 1, active: 1, queued: 1 }],
      totals: { admitted: 1, queued: 1, refused: snapshot.totals.refused },
    })
    expect(Object.values(snapshot.totals.refused)).toEqual(Array(13).fill(0))
    running.release()
    await flush()
    waiting.release()
    expectQuiet({ core, clock })
  })

  it('API-4 of a disabled core shows no configuration', () => {
    const { core } = setup()
    expect(core.snapshot()).toMatchObject({
      state: 'disabled',
      generation: 0,
      config: null,
      active: 0,
      scopes: [],
      rates: [],
      partitions: [],
      generations: [],
      totals: { admitted: 0, queued: 0 },
    })
  })

  it('API-4 is a copy: what happens later does not change it', async () => {
    const { core, clock, hold } = setup({ global: { concurrency: 1 } })
    const snapshot = core.snapshot()
    const text = JSON.stringify(snapshot)
    const running = hold()
    hold()
    await core.update({})
    expect(JSON.stringify(snapshot)).toBe(text)
    running.release()
    expectQuiet({ core, clock })
  })

  it('API-4 taking it does not change what calls are told', async () => {
    const outcomes = [false, true].map((isWatched) => {
      const { core, clock, hold } = setup(config, { selectors })
      const told: unknown[] = []
      const calls = []
      for (let step = 0; step < 30; step += 1) {
        const call = hold({ contract: '/orders', method: step % 2 === 0 ? 'POST /orders' : 'GET /orders' })
        calls.push(call)
        told.push(call.immediate, call.refusal)
        if (isWatched) core.snapshot()
        clock.advance(step * 7)
        if (isWatched) core.snapshot()
        const running = calls.find((each) => each.started)
        if (step % 3 === 0) running?.release()
      }
      return told
    })
    expect(outcomes[1]).toEqual(outcomes[0])
  })

  it('API-4 a removed scope is shown while it is held or waited for, with its last limit', async () => {
    const { core, clock, hold, flush } = setup({ queue: { maxQueuedCalls: 9 }, global: { concurrency: 1 } })
    const [running, waiting] = [hold(), hold()]
    await core.update({})
    expect(core.snapshot().scopes).toEqual([{ scope: 'global', limit: 1, active: 1, waiting: 1 }])
    running.release()
    await flush()
    expect(core.snapshot().scopes).toEqual([{ scope: 'global', limit: 1, active: 1, waiting: 0 }])
    waiting.release()
    expect(core.snapshot().scopes).toEqual([])
    expectQuiet({ core, clock })
  })

  it('API-4 a partition of a contract has its labels; ids of every kind are ordinary ids', () => {
    const { core } = setup(
      {
        contracts: JSON.parse(
          '{ "__proto__": { "concurrency": 1 }, "constructor": { "partitions": { "tenant": { "concurrency": 4 } } } }',
        ),
      },
      { selectors },
    )
    expect(core.snapshot().scopes).toMatchObject([{ scope: 'contract:__proto__', contract: '__proto__' }])
    expect(core.snapshot().partitions).toMatchObject([
      { scope: 'contract:constructor#tenant', contract: 'constructor', selector: 'tenant', limit: 4 },
    ])
    expect(core.admit({ contract: '__proto__' })).toHaveProperty('kind', 'admitted')
    expect(core.admit({ contract: '__proto__' })).toHaveProperty('scope', 'contract:__proto__')
    expect(core.admit({ contract: 'toString' })).toHaveProperty('kind', 'admitted')
  })

  it('STA-1 ids that only look alike when joined are different scopes', () => {
    const { core, hold } = setup({
      contracts: {
        '/a': { methods: { 'b c': { concurrency: 1 } } },
        '/a b': { methods: { c: { concurrency: 1 } } },
      },
    })
    expect(hold({ contract: '/a', method: 'b c' }).started).toBe(true)
    expect(hold({ contract: '/a b', method: 'c' }).started).toBe(true)
    expect(core.snapshot().scopes.map(({ active }) => active)).toEqual([1, 1])
  })
})
