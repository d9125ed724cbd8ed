import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../src/config/parse.ts'
import type { ConfigInput, RateConfig } from '../../src/config/types.ts'
import { difference, type Plan } from '../../src/program/plan.ts'
import { setup } from '../support/core.ts'

const rate: RateConfig = { algorithm: 'fixed-window', permitLimit: 1, windowMs: 1 }
const selectors = new Set(['tenant', 'client'])
const planOf = (from: ConfigInput, to: ConfigInput): Plan =>
  difference(parseConfig(from, { selectors }), parseConfig(to, { selectors })).plan
const nothing: Plan = { added: [], removed: [], resized: [], queue: [], routes: [], refusals: [] }
const delivery = { key: 'client', maxOpenBodies: 8 }

describe('plan', () => {
  it('PUB-11 is empty for the same configuration', () => {
    const config: ConfigInput = {
      queue: { maxQueuedCalls: 5 },
      global: { concurrency: 1, rate, partitions: { tenant: { concurrency: 1 } } },
      contracts: { '/a': { holdUntil: 'body', delivery, methods: { get: { concurrency: 2 } } } },
    }
    expect(planOf(config, config)).toEqual(nothing)
    expect(planOf({}, {})).toEqual(nothing)
  })

  it('PUB-11 lists added, removed and resized scopes by pointer and name', () => {
    const from: ConfigInput = {
      global: { concurrency: 10 },
      contracts: { '/a': { concurrency: 1, methods: { get: { concurrency: 2 } } } },
    }
    const to: ConfigInput = {
      global: { concurrency: 20 },
      contracts: { '/a': { methods: { get: { concurrency: 0 }, put: { concurrency: 3 } } }, '/b': { concurrency: 4 } },
    }
    expect(planOf(from, to)).toEqual({
      ...nothing,
      added: [
        { pointer: '/contracts/~1a/methods/put/concurrency', scope: 'method:/a put', from: null, to: 3 },
        { pointer: '/contracts/~1b/concurrency', scope: 'contract:/b', from: null, to: 4 },
      ],
      removed: [{ pointer: '/contracts/~1a/concurrency', scope: 'contract:/a', from: 1, to: null }],
      resized: [
        { pointer: '/global/concurrency', scope: 'global', from: 10, to: 20 },
        { pointer: '/contracts/~1a/methods/get/concurrency', scope: 'method:/a get', from: 2, to: 0 },
      ],
    })
  })

  it('PUB-11 a contract that is left out takes its methods along', () => {
    const from: ConfigInput = { contracts: { '/a': { concurrency: 1, methods: { get: { concurrency: 2 } } } } }
    expect(planOf(from, {}).removed.map(({ scope }) => scope)).toEqual(['contract:/a', 'method:/a get'])
  })

  it('PUB-11 lists each changed queue setting; an added or removed queue changes all of them', () => {
    const queue = { maxQueuedCalls: 5 }
    expect(planOf({ queue }, { queue: { ...queue, maxQueueDelayMs: 7, queueOneWayCalls: true } }).queue).toEqual([
      { setting: 'maxQueueDelayMs', from: 1000, to: 7 },
      { setting: 'queueOneWayCalls', from: false, to: true },
    ])
    expect(planOf({}, { queue }).queue.map(({ setting, from, to }) => [setting, from, to])).toEqual([
      ['maxQueuedCalls', null, 5],
      ['maxQueuedBytes', null, 16_777_216],
      ['maxQueueDelayMs', null, 1000],
      ['queueOneWayCalls', null, false],
      ['unknownBodyBytes', null, 65_536],
    ])
    expect(planOf({ queue }, {}).queue.every(({ to }) => to === null)).toBe(true)
  })

  it('PUB-11 lists changes of holdUntil and delivery', () => {
    const from: ConfigInput = { contracts: { '/a': { holdUntil: 'body', methods: { get: { delivery } } } } }
    const to: ConfigInput = {
      contracts: { '/a': { methods: { get: { delivery: { ...delivery, maxOpenBodies: 9 } } } } },
    }
    const full = { ...delivery, stallTimeoutMs: 30_000 }
    expect(planOf(from, to).routes).toEqual([
      { pointer: '/contracts/~1a/holdUntil', scope: 'contract:/a', setting: 'holdUntil', from: 'body', to: null },
      {
        pointer: '/contracts/~1a/methods/get/delivery',
        scope: 'method:/a get',
        setting: 'delivery',
        from: full,
        to: { ...full, maxOpenBodies: 9 },
      },
    ])
    expect(planOf({ contracts: { '/a': { delivery } } }, {}).routes).toMatchObject([{ from: full, to: null }])
  })

  it('PUB-9 escapes pointers, and names ids that collide with object internals', () => {
    const contracts = JSON.parse('{ "__proto__": { "concurrency": 1 }, "a/b~c": { "concurrency": 1 } }')
    expect(planOf({}, { contracts }).added.map(({ pointer }) => pointer)).toEqual([
      '/contracts/__proto__/concurrency',
      '/contracts/a~1b~0c/concurrency',
    ])
    expect(planOf({ contracts }, {}).removed).toHaveLength(2)
  })

  it('PUB-9 a scope that did not change is not refused because of its rate', () => {
    const plan = planOf({ global: { concurrency: 1, rate } }, { global: { concurrency: 2, rate: { ...rate } } })
    expect([plan.refusals, plan.resized.length]).toEqual([[], 1])
  })

  it('PUB-11 plan changes nothing, and an update then does what was planned', async () => {
    const { core } = setup({ global: { concurrency: 1 } })
    const candidate: ConfigInput = { global: { concurrency: 2 }, contracts: { '/a': { concurrency: 1 } } }
    const before = core.snapshot()
    const plan = core.plan(candidate)
    expect(core.snapshot()).toEqual(before)
    expect((await core.update(candidate)).plan).toEqual(plan)
  })

  it('API-5 while disabled the plan is against the empty configuration, without refusals', () => {
    const { core } = setup({ global: { concurrency: 1, rate } })
    core.disable()
    expect(core.plan({ global: { concurrency: 3, rate: { ...rate, windowMs: 2 } } })).toEqual({
      ...nothing,
      added: [{ pointer: '/global/concurrency', scope: 'global', from: null, to: 3 }],
    })
  })
})
