import { describe, expect, it } from 'vitest'
import { parseConfig, parseConfigSteps } from '../../src/config/parse.ts'
import { everything, fixedWindow, pointersOf } from './support.ts'

function expectDeepFrozen(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  expect(Object.isFrozen(value)).toBe(true)
  for (const member of Object.values(value)) expectDeepFrozen(member)
}

describe('what is valid', () => {
  it('CFG-3 every setting is taken over as it is', () => {
    expect(parseConfig(everything)).toEqual(everything)
  })

  it('CFG-3 an empty configuration limits nothing', () => {
    expect(parseConfig({})).toEqual({})
    expect(parseConfig({ global: {}, contracts: {} })).toEqual({ global: {}, contracts: {} })
    expect(parseConfig({ contracts: { '/a': {}, '/b': { methods: {} }, '/c': { partitions: {} } } })).toEqual({
      contracts: { '/a': {}, '/b': { methods: {} }, '/c': { partitions: {} } },
    })
  })

  it('CFG-3 defaults are filled in where a setting is absent, and nowhere else', () => {
    const config = parseConfig({
      queue: { maxQueuedCalls: 1 },
      global: { partitions: { tenant: { concurrency: 1 } } },
      contracts: { '/a': { delivery: { key: 'tenant', maxOpenBodies: 1 }, methods: { 'GET /a': {} } } },
    })
    expect(config).toEqual({
      queue: {
        maxQueuedCalls: 1,
        maxQueuedBytes: 16_777_216,
        maxQueueDelayMs: 1000,
        queueOneWayCalls: false,
        unknownBodyBytes: 65_536,
      },
      global: {
        partitions: {
          tenant: { maxPartitions: 10_000, idleTimeoutMs: 60_000, onPartitionLimit: 'evict', concurrency: 1 },
        },
      },
      contracts: {
        '/a': {
          delivery: { key: 'tenant', maxOpenBodies: 1, stallTimeoutMs: 30_000 },
          methods: { 'GET /a': {} },
        },
      },
    })
    expect('holdUntil' in (config.contracts?.['/a'] ?? {})).toBe(false) // a method would not inherit a default
  })

  it('CFG-3 every bound is itself valid, the lower and the upper', () => {
    const queue = (calls: number, bytes: number, delayMs: number): unknown => ({
      queue: { maxQueuedCalls: calls, maxQueuedBytes: bytes, maxQueueDelayMs: delayMs, unknownBodyBytes: bytes },
    })
    expect(pointersOf(queue(0, 0, 0))).toEqual([])
    expect(pointersOf(queue(1_000_000, 2 ** 40, 2_147_483_647))).toEqual([])
    const scope = (closed: number, permits: number, ms: number, segmentsPerWindow: number): unknown => ({
      concurrency: closed,
      rate: { algorithm: 'sliding-window', permitLimit: permits, windowMs: ms, segmentsPerWindow },
      delivery: { key: 'k', maxOpenBodies: permits, stallTimeoutMs: ms },
      partitions: {
        k: {
          maxPartitions: permits,
          idleTimeoutMs: ms,
          rate: { algorithm: 'token-bucket', tokenLimit: permits, tokensPerPeriod: permits, replenishmentPeriodMs: ms },
        },
      },
    })
    expect(pointersOf({ contracts: { '/a': scope(0, 1, 1, 1) } })).toEqual([])
    expect(pointersOf({ contracts: { '/a': scope(1_000_000, 1_000_000, 2_147_483_647, 1000) } })).toEqual([])
  })

  it('CFG-3 an explicit undefined is as good as absent, wherever something optional stands', () => {
    const config = parseConfig({
      queue: { maxQueuedCalls: 1, maxQueuedBytes: undefined },
      global: undefined,
      contracts: { '/a': { concurrency: undefined, methods: { 'GET /a': undefined } }, '/b': undefined },
    })
    expect(config.queue?.maxQueuedBytes).toBe(16_777_216)
    expect('global' in config).toBe(false)
    expect(Object.keys(config.contracts ?? {})).toEqual(['/a'])
    expect(Object.keys(config.contracts?.['/a'] ?? {})).toEqual(['methods'])
    expect(pointersOf({ queue: { maxQueuedCalls: undefined } })).toEqual(['/queue/maxQueuedCalls'])
  })

  it('CFG-3 minus zero becomes zero', () => {
    expect(Object.is(parseConfig({ global: { concurrency: -0 } }).global?.concurrency, 0)).toBe(true)
  })

  it('CFG-2 selector names are checked only against selectors that were given', () => {
    expect(pointersOf(everything)).toEqual([])
    expect(pointersOf(everything, { selectors: new Set(['tenant', 'client']) })).toEqual([])
  })
})

describe('the copy', () => {
  it('CFG-4 it is frozen to the bottom, the candidate is not', () => {
    const candidate = structuredClone(everything)
    expectDeepFrozen(parseConfig(candidate))
    expect(Object.isFrozen(candidate)).toBe(false)
    expect(Object.isFrozen(candidate.contracts?.['/orders']?.methods)).toBe(false)
  })

  it('CFG-4 changing the candidate afterwards changes nothing', () => {
    const candidate: { global: { concurrency: number; rate: { permitLimit: number } }; contracts: object } = {
      global: { concurrency: 1, rate: { ...fixedWindow } },
      contracts: { '/a': {} },
    }
    const config = parseConfig(candidate)
    candidate.global.concurrency = 2
    candidate.global.rate.permitLimit = 2
    Object.assign(candidate.contracts, { '/b': {} })
    expect(config).toEqual({ global: { concurrency: 1, rate: fixedWindow }, contracts: { '/a': {} } })
  })

  it('CFG-4 an object that stands in two places is copied twice', () => {
    const shared = { concurrency: 1 }
    const config = parseConfig({ contracts: { '/a': shared, '/b': shared } })
    expect(config.contracts?.['/a']).not.toBe(config.contracts?.['/b'])
    expect(config.contracts?.['/a']).not.toBe(shared)
  })

  it('CFG-3 a frozen candidate is welcome, and a parsed one parses to an equal one', () => {
    for (const candidate of [everything, {}, { queue: { maxQueuedCalls: 1 } }]) {
      const once = parseConfig(candidate)
      expect(parseConfig(once)).toEqual(once)
      expect(JSON.stringify(parseConfig(once))).toBe(JSON.stringify(once))
    }
  })
})

describe('ids', () => {
  const odd = [
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'hasOwnProperty',
    '~',
    '/',
    'a~1b',
    ' ',
    '0',
    'é\u0000',
  ]
  const records = (id: string): unknown =>
    JSON.parse(
      JSON.stringify({
        global: { partitions: { ID: { concurrency: 1 } } },
        contracts: { ID: { partitions: { ID: { concurrency: 2 } }, methods: { ID: { concurrency: 3 } } } },
      }).replaceAll('"ID"', JSON.stringify(id)),
    )

  it.each(odd)('CFG-2 %j is an ordinary contract, method and selector id', (id) => {
    const config = parseConfig(records(id), { selectors: new Set([id]) })
    const contract = config.contracts?.[id]
    expect(config.global?.partitions?.[id]?.concurrency).toBe(1)
    expect(contract?.partitions?.[id]?.concurrency).toBe(2)
    expect(contract?.methods?.[id]?.concurrency).toBe(3)
    expect(Object.keys(config.contracts ?? {})).toEqual([id])
    expectDeepFrozen(config)
  })

  it.each(odd)('CFG-2 %j survives a round trip through JSON', (id) => {
    const config = parseConfig(records(id))
    const again = parseConfig(JSON.parse(JSON.stringify(config)))
    expect(JSON.stringify(again)).toBe(JSON.stringify(config))
    expect(Object.keys(again.contracts ?? {})).toEqual([id])
  })

  it('CFG-2 an id that was not configured is not found, whatever objects inherit', () => {
    const config = parseConfig({ global: { partitions: {} }, contracts: { '/a': { methods: {} } } })
    for (const id of odd) {
      expect(config.contracts?.[id]).toBeUndefined()
      expect(config.contracts?.['/a']?.methods?.[id]).toBeUndefined()
      expect(config.global?.partitions?.[id]).toBeUndefined()
    }
  })

  it('CFG-2 the longest id is 2048 characters', () => {
    const [longest, longer] = ['a'.repeat(2048), 'a'.repeat(2049)]
    expect(pointersOf({ contracts: { [longest]: { methods: { [longest]: {} } } } })).toEqual([])
    expect(pointersOf({ contracts: { [longer]: {} } })).toEqual([`/contracts/${longer}`])
    expect(pointersOf({ contracts: { '': {} } })).toEqual(['/contracts/'])
    expect(pointersOf({ global: { partitions: { '': { concurrency: 1 } } } })).toEqual(['/global/partitions/'])
  })
})

describe('steps', () => {
  const contracts = (count: number): unknown => ({
    contracts: Object.fromEntries(
      Array.from({ length: count }, (_, i) => [`/c${i}`, { concurrency: i, holdUntil: 'body' }]),
    ),
  })

  it('CFG-1 a large candidate is parsed in many short steps, with the same result', () => {
    const steps = parseConfigSteps(contracts(10_000))
    let yields = 0
    let step = steps.next()
    for (; step.done !== true; step = steps.next()) yields += 1
    expect(yields).toBeGreaterThanOrEqual(3)
    expect(yields).toBeLessThanOrEqual(10)
    expect(step.value).toEqual(parseConfig(contracts(10_000)))
  })

  it('CFG-1 a small candidate is parsed in one step', () => {
    expect(parseConfigSteps(everything).next().done).toBe(true)
  })

  it('CFG-1 a candidate that changes between two steps still gives a valid copy', () => {
    const contract = { concurrency: 1, holdUntil: 'body' }
    const contracts: { [id: string]: unknown } = {}
    for (let index = 0; index < 9000; index += 1) contracts[`/c${index}`] = contract
    const candidate = { contracts }
    const steps = parseConfigSteps(candidate)
    expect(steps.next().done).toBe(false)
    Object.assign(candidate.contracts, { '/c8999': 'wrong' })
    expect(() => [...steps]).toThrow('/contracts/~1c8999: must be a plain object, got "wrong"')
  })
})
