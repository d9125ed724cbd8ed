import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../src/config/parse.ts'
import { AdmissionConfigError } from '../../src/errors.ts'
import { everything, fixedWindow, issuesOf, pointersOf, slidingWindow, tokenBucket } from './support.ts'

it('CFG-1 every issue of a document is listed, in its order, with its pointer', () => {
  const candidate = {
    quue: {},
    queue: { maxQueuedBytes: -1, extra: 1, queueOneWayCalls: 'yes', another: 2 },
    global: {
      concurrency: '5',
      rate: { algorithm: 'leaky-bucket', permitLimit: 0, rps: 5 },
      partitions: { tenant: {}, user: { maxPartitions: 0, concurrency: 1.5 } },
    },
    contracts: {
      '/a~b': {
        holdUntil: 'never',
        methods: { 'GET /a~b/:id': { rate: { algorithm: 'fixed-window' }, delivery: { key: 'nobody' } } },
        delivery: { key: 'tenant', maxOpenBodies: null },
      },
      '/ok': { concurrency: 1 },
      '/list': [],
    },
  }
  const method = '/contracts/~1a~0b/methods/GET ~1a~0b~1:id'
  expect(pointersOf(candidate, { selectors: new Set(['tenant', 'client']) })).toEqual([
    '/quue',
    '/queue/maxQueuedBytes',
    '/queue/extra',
    '/queue/queueOneWayCalls',
    '/queue/another',
    '/queue/maxQueuedCalls',
    '/global/concurrency',
    '/global/rate/algorithm',
    '/global/rate/permitLimit',
    '/global/rate/rps',
    '/global/partitions/tenant',
    '/global/partitions/user',
    '/global/partitions/user/maxPartitions',
    '/global/partitions/user/concurrency',
    '/contracts/~1a~0b/holdUntil',
    `${method}/rate/permitLimit`,
    `${method}/rate/windowMs`,
    `${method}/delivery/key`,
    `${method}/delivery/maxOpenBodies`,
    '/contracts/~1a~0b/delivery/maxOpenBodies',
    '/contracts/~1list',
  ])
})

it('CFG-1 the error carries code, name, issues and the first of them as its message', () => {
  try {
    parseConfig({ global: { concurrency: -1 } })
    expect.unreachable()
  } catch (error) {
    expect(error).toBeInstanceOf(AdmissionConfigError)
    expect(error).toMatchObject({ name: 'AdmissionConfigError', code: 'ADMISSION_CONFIG' })
    expect(String(error)).toContain('/global/concurrency: must be a whole number from 0 to 1000000, got -1')
  }
})

describe('wrong values', () => {
  const wrongNumbers: [unknown, string][] = [
    [-1, '-1'],
    [1.5, '1.5'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    [1_000_001, '1000001'],
    ['5', '"5"'],
    ['', '""'],
    [true, 'true'],
    [null, 'null'],
    [5n, 'a BigInt'],
    [Symbol('5'), 'a symbol'],
    [() => 5, 'a function'],
    [[5], 'an array'],
    [{ valueOf: () => 5 }, 'an object'],
    [Object(5), 'an object'],
  ]
  it.each(wrongNumbers)('CFG-1 %s is no limit, and the message names it and the range', (value, shown) => {
    expect(issuesOf({ global: { concurrency: value } })).toEqual([
      { pointer: '/global/concurrency', message: `must be a whole number from 0 to 1000000, got ${shown}` },
    ])
  })

  const outside: [string, unknown, string][] = [
    ['queue', { maxQueuedCalls: 1_000_001 }, '/maxQueuedCalls'],
    ['queue', { maxQueuedCalls: 1, maxQueuedBytes: 2 ** 40 + 1 }, '/maxQueuedBytes'],
    ['queue', { maxQueuedCalls: 1, unknownBodyBytes: -1 }, '/unknownBodyBytes'],
    ['queue', { maxQueuedCalls: 1, maxQueueDelayMs: 2_147_483_648 }, '/maxQueueDelayMs'],
    ['queue', { maxQueuedCalls: 1, queueOneWayCalls: 0 }, '/queueOneWayCalls'],
    ['global', { rate: { ...tokenBucket, tokenLimit: 0 } }, '/rate/tokenLimit'],
    ['global', { rate: { ...tokenBucket, tokensPerPeriod: 1_000_001 } }, '/rate/tokensPerPeriod'],
    ['global', { rate: { ...tokenBucket, replenishmentPeriodMs: 0 } }, '/rate/replenishmentPeriodMs'],
    ['global', { rate: { ...fixedWindow, permitLimit: 0 } }, '/rate/permitLimit'],
    ['global', { rate: { ...fixedWindow, windowMs: 2_147_483_648 } }, '/rate/windowMs'],
    ['global', { rate: { ...slidingWindow, segmentsPerWindow: 1001 } }, '/rate/segmentsPerWindow'],
    ['global', { rate: { ...slidingWindow, segmentsPerWindow: 0 } }, '/rate/segmentsPerWindow'],
    ['global', { partitions: { k: { concurrency: 1, maxPartitions: 1_000_001 } } }, '/partitions/k/maxPartitions'],
    ['global', { partitions: { k: { concurrency: 1, idleTimeoutMs: 0 } } }, '/partitions/k/idleTimeoutMs'],
    ['global', { partitions: { k: { concurrency: 1, onPartitionLimit: 'drop' } } }, '/partitions/k/onPartitionLimit'],
    ['global', { partitions: { k: { rate: null } } }, '/partitions/k/rate'],
  ]
  it.each(outside)('CFG-1 in %s, %j is outside its bounds', (part, value, pointer) => {
    const issues = issuesOf({ [part]: value })
    expect(issues.map((issue) => issue.pointer)).toEqual([`/${part}${pointer}`])
    expect(issues[0]?.message).toMatch(/^must be .+, got .+$/)
  })

  it('CFG-1 a delivery has at least one body and a registered key', () => {
    const delivery = { key: 5, maxOpenBodies: 0, stallTimeoutMs: 0 }
    expect(pointersOf({ contracts: { a: { delivery } } })).toEqual([
      '/contracts/a/delivery/key',
      '/contracts/a/delivery/maxOpenBodies',
      '/contracts/a/delivery/stallTimeoutMs',
    ])
  })

  it('CFG-1 global has neither holdUntil, delivery nor methods, and a method has no methods', () => {
    const global = { holdUntil: 'body', delivery: {}, methods: {} }
    expect(pointersOf({ global, contracts: { a: { methods: { m: { methods: {} } } } } })).toEqual([
      '/global/holdUntil',
      '/global/delivery',
      '/global/methods',
      '/contracts/a/methods/m/methods',
    ])
  })

  it.each([undefined, null, 5, 'x', [], new Date(0), new Map(), () => ({})])(
    'CFG-1 %s is no document; its pointer is empty',
    (candidate) => {
      expect(pointersOf(candidate)).toEqual([''])
      expect(issuesOf(candidate)[0]?.message).toMatch(/^must be a plain object, got /)
    },
  )

  it('CFG-1 a message is short, however long the value', () => {
    const [issue] = issuesOf({ global: { concurrency: 'x'.repeat(1_000_000) } })
    expect(issue?.message).toBe(
      `must be a whole number from 0 to 1000000, got "${'x'.repeat(32)}"… (1000000 characters)`,
    )
    const [unknown] = issuesOf({ global: { ['y'.repeat(1_000_000)]: { secret: 'password' } } })
    expect(unknown?.message.length).toBeLessThan(200)
    expect(unknown?.message).not.toContain('password')
  })
})

describe('unknown settings', () => {
  const places: [string, unknown, string][] = [
    ['the document', {}, ''],
    ['the queue', { queue: { maxQueuedCalls: 1 } }, '/queue'],
    ['global', { global: {} }, '/global'],
    ['a bucket', { global: { rate: tokenBucket } }, '/global/rate'],
    ['a fixed window', { global: { rate: fixedWindow } }, '/global/rate'],
    ['a sliding window', { global: { rate: slidingWindow } }, '/global/rate'],
    ['a partition', { global: { partitions: { k: { concurrency: 1 } } } }, '/global/partitions/k'],
    ['a contract', { contracts: { a: {} } }, '/contracts/a'],
    ['a method', { contracts: { a: { methods: { m: {} } } } }, '/contracts/a/methods/m'],
    ['a delivery', { contracts: { a: { delivery: { key: 'k', maxOpenBodies: 1 } } } }, '/contracts/a/delivery'],
  ]
  const unknown = ['first', 'second', '__proto__', 'constructor', 'prototype', 'toString', '']

  it.each(places)('CFG-1 CFG-2 in %s each one is an issue, whatever its name', (_place, valid, pointer) => {
    expect(pointersOf(valid)).toEqual([])
    const keys = pointer.split('/').slice(1)
    const candidate: unknown = JSON.parse(JSON.stringify(valid))
    let object: unknown = candidate
    for (const key of keys) object = Reflect.get(Object(object), key)
    for (const key of unknown) {
      Object.defineProperty(object, key, { value: 1, enumerable: true, configurable: true, writable: true })
    }
    expect(pointersOf(candidate)).toEqual(unknown.map((key) => `${pointer}/${key}`))
  })

  it('CFG-1 the message names it and what is known there', () => {
    expect(issuesOf({ global: { concurency: 5 } })).toEqual([
      {
        pointer: '/global/concurency',
        message: 'is not a setting here: "concurency"; known are concurrency, rate, partitions',
      },
    ])
  })

  it('CFG-1 an unknown setting is an issue also when it is undefined', () => {
    expect(pointersOf({ extra: undefined })).toEqual(['/extra'])
  })

  it('CFG-1 a setting of another algorithm is unknown', () => {
    expect(pointersOf({ global: { rate: { ...fixedWindow, segmentsPerWindow: 1 } } })).toEqual([
      '/global/rate/segmentsPerWindow',
    ])
  })

  it('CFG-1 without a known algorithm, values of every algorithm are checked and missing ones are not guessed', () => {
    expect(pointersOf({ global: { rate: { tokenLimit: -1, windowMs: 5, rps: 1 } } })).toEqual([
      '/global/rate/tokenLimit',
      '/global/rate/rps',
      '/global/rate/algorithm',
    ])
    for (const algorithm of ['Token-Bucket', 'toString', '__proto__', null, 5, {}]) {
      expect(pointersOf({ global: { rate: { ...fixedWindow, algorithm } } })).toEqual(['/global/rate/algorithm'])
    }
  })
})

describe('what no single value says', () => {
  it('CFG-1 a missing setting has the pointer that it would have', () => {
    expect(issuesOf({ queue: {} })).toEqual([
      { pointer: '/queue/maxQueuedCalls', message: 'must be a whole number from 0 to 1000000, got nothing' },
    ])
    expect(pointersOf({ global: { rate: { algorithm: 'token-bucket' } } })).toEqual([
      '/global/rate/tokenLimit',
      '/global/rate/tokensPerPeriod',
      '/global/rate/replenishmentPeriodMs',
    ])
  })

  it('CFG-1 a partition needs concurrency or rate', () => {
    const message = 'must have concurrency or rate or both'
    expect(issuesOf({ global: { partitions: { k: {} } } })).toEqual([{ pointer: '/global/partitions/k', message }])
    expect(pointersOf({ global: { partitions: { k: { concurrency: undefined } } } })).toEqual(['/global/partitions/k'])
    expect(pointersOf({ global: { partitions: { k: { extra: 1 } } } })).toEqual([
      '/global/partitions/k/extra',
      '/global/partitions/k',
    ])
    // One that is there but wrong is one issue, not two.
    expect(pointersOf({ global: { partitions: { k: { concurrency: -1 } } } })).toEqual([
      '/global/partitions/k/concurrency',
    ])
  })

  it('CFG-1 a window has at most as many segments as milliseconds', () => {
    const rate = (windowMs: unknown, segmentsPerWindow: unknown): unknown => ({
      global: { rate: { ...slidingWindow, windowMs, segmentsPerWindow } },
    })
    expect(issuesOf(rate(10, 10))).toEqual([])
    expect(issuesOf(rate(9, 10))).toEqual([
      {
        pointer: '/global/rate/segmentsPerWindow',
        message: 'must be a whole number from 1 to windowMs, here 9, got 10',
      },
    ])
    expect(pointersOf(rate(0, 10))).toEqual(['/global/rate/windowMs'])
    expect(pointersOf(rate(undefined, 10))).toEqual(['/global/rate/windowMs'])
  })

  it('CFG-2 a selector that is not registered is an issue, for partitions and deliveries', () => {
    const selectors = new Set(['client'])
    expect(pointersOf(everything, { selectors })).toEqual([
      '/global/partitions/tenant',
      '/contracts/~1orders/methods/GET ~1orders~1:id/delivery/key',
    ])
    expect(issuesOf({ global: { partitions: { tenat: { concurrency: 1 } } } }, { selectors })).toEqual([
      { pointer: '/global/partitions/tenat', message: 'names no registered selector: "tenat"' },
    ])
    const proto: unknown = JSON.parse('{"global":{"partitions":{"__proto__":{"concurrency":1}}}}')
    expect(pointersOf(proto, { selectors })).toEqual(['/global/partitions/__proto__'])
  })

  it('CFG-1 what is under an unknown selector is checked too', () => {
    const candidate = { global: { partitions: { nobody: { concurrency: -1 } } } }
    expect(pointersOf(candidate, { selectors: new Set<string>() })).toEqual([
      '/global/partitions/nobody',
      '/global/partitions/nobody/concurrency',
    ])
  })
})

describe('how many', () => {
  const record = (count: number, value: unknown): unknown =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, value]))

  it('CFG-1 a scope has at most 16 selectors', () => {
    const candidate = (count: number): unknown => ({ global: { partitions: record(count, { concurrency: 1 }) } })
    expect(issuesOf(candidate(16))).toEqual([])
    expect(issuesOf(candidate(17))).toEqual([
      { pointer: '/global/partitions', message: 'must have at most 16 selectors, got 17' },
    ])
  })

  it('CFG-1 there are at most 10000 contracts, and 10000 methods in each', () => {
    expect(issuesOf({ contracts: record(10_000, {}) })).toEqual([])
    expect(issuesOf({ contracts: record(10_001, {}) })).toEqual([
      { pointer: '/contracts', message: 'must have at most 10000 contracts, got 10001' },
    ])
    expect(issuesOf({ contracts: { a: { methods: record(10_000, {}) } } })).toEqual([])
    expect(issuesOf({ contracts: { a: { methods: record(10_001, {}) } } })).toEqual([
      { pointer: '/contracts/a/methods', message: 'must have at most 10000 methods, got 10001' },
    ])
  })

  it('CFG-1 there are at most 100000 methods in all', () => {
    const contract = { methods: record(10_000, {}) }
    const ten = { ...Object(record(10, contract)) }
    expect(issuesOf({ contracts: ten })).toEqual([])
    expect(issuesOf({ contracts: { ...ten, more: { methods: { m: {} } } } })).toEqual([
      { pointer: '/contracts', message: 'must have at most 100000 methods in all contracts, got 100001' },
    ])
  })

  it('CFG-1 one issue too many entries does not hide the others', () => {
    expect(pointersOf({ global: { partitions: record(17, {}) } })).toHaveLength(18)
  })
})
