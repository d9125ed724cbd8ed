import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../src/config/parse.ts'
import { issuesOf, pointersOf } from './support.ts'

class Settings {
  concurrency = 1
}

function throwing(): never {
  throw new Error('do not look')
}

describe('objects that are not plain', () => {
  it.each([
    ['an array', []],
    ['a class instance', new Settings()],
    ['a Date', new Date(0)],
    ['a Map', new Map([['concurrency', 1]])],
    ['a boxed string', Object('text')],
    ['an heir of another object', Object.create({ concurrency: 1 })],
    ['a function', throwing],
    ['an array with extra properties', Object.assign([], { concurrency: 1 })],
    ['a literal with a __proto__', { __proto__: { concurrency: 1 } }],
  ])('CFG-1 %s is no scope and no record', (_what, value) => {
    expect(pointersOf({ global: value, contracts: value })).toEqual(['/global', '/contracts'])
    expect(pointersOf({ contracts: { a: value } })).toEqual(['/contracts/a'])
  })

  it('CFG-1 objects without a prototype are plain, and so are those of other realms', () => {
    const bare = Object.assign(Object.create(null), { concurrency: 1 })
    expect(parseConfig({ global: bare })).toEqual({ global: { concurrency: 1 } })
    const foreign = Object.assign(Object.create(Object.create(null)), { concurrency: 1 }) // as another realm's look
    expect(parseConfig({ global: foreign })).toEqual({ global: { concurrency: 1 } })
  })
})

describe('properties', () => {
  it('CFG-1 only own, enumerable, string-keyed properties count', () => {
    const global = { concurrency: 1, [Symbol('extra')]: 1 }
    Object.defineProperty(global, 'hidden', { value: 1, enumerable: false })
    expect(parseConfig({ global })).toEqual({ global: { concurrency: 1 } })
  })

  it('CFG-1 what Object.prototype was given is neither read nor taken for a setting', () => {
    const added = ['concurrency', 'rate', 'algorithm', 'maxQueuedCalls', '/a']
    for (const key of added) {
      Object.defineProperty(Object.prototype, key, { value: 7, configurable: true, writable: true, enumerable: true })
    }
    try {
      expect(JSON.stringify(parseConfig({ global: {}, contracts: { a: {} } }))).toBe(
        '{"global":{},"contracts":{"a":{}}}',
      )
      expect(pointersOf({ queue: {} })).toEqual(['/queue/maxQueuedCalls'])
      expect(pointersOf({ global: { rate: {}, partitions: { k: {} } } })).toEqual([
        '/global/rate/algorithm',
        '/global/partitions/k',
      ])
    } finally {
      for (const key of added) Reflect.deleteProperty(Object.prototype, key)
    }
  })

  it('CFG-4 a getter is read once, and its value kept', () => {
    let reads = 0
    const global = {
      get concurrency() {
        reads += 1
        return reads
      },
    }
    const config = parseConfig({ global })
    expect(reads).toBe(1)
    expect(config).toEqual({ global: { concurrency: 1 } })
    expect(Object.getOwnPropertyDescriptor(config.global, 'concurrency')?.value).toBe(1)
  })

  it('CFG-1 an algorithm that changes while it is read is an issue', () => {
    const names = ['fixed-window', 'token-bucket']
    const rate = {
      get algorithm() {
        return names.shift()
      },
      permitLimit: 1,
      windowMs: 1,
    }
    expect(pointersOf({ global: { rate } })).toEqual(['/global/rate/algorithm'])
  })

  it('CFG-1 a getter that throws is one issue among the others', () => {
    const candidate = {
      get global() {
        return throwing()
      },
      queue: {
        get maxQueuedCalls() {
          return throwing()
        },
        maxQueuedBytes: -1,
      },
    }
    expect(issuesOf(candidate)).toEqual([
      { pointer: '/global', message: 'cannot be read: reading it throws' },
      { pointer: '/queue/maxQueuedCalls', message: 'cannot be read: reading it throws' },
      { pointer: '/queue/maxQueuedBytes', message: 'must be a whole number from 0 to 1099511627776, got -1' },
    ])
  })

  it('CFG-1 a proxy that throws is an issue, as an object and as a number', () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    const hostile = new Proxy({}, { ownKeys: throwing })
    expect(pointersOf(proxy)).toEqual([''])
    expect(pointersOf({ queue: hostile, global: { concurrency: proxy, rate: proxy } })).toEqual([
      '/queue',
      '/global/concurrency',
      '/global/rate',
    ])
  })

  it('CFG-1 a value that throws when it is turned into text is named without that', () => {
    const value = { toString: throwing, toJSON: throwing, [Symbol.toPrimitive]: throwing }
    expect(issuesOf({ global: { concurrency: value } })[0]?.message).toContain('got an object')
  })

  it('CFG-2 an error of the selectors themselves passes through', () => {
    const candidate = { global: { partitions: { k: { concurrency: 1 } } } }
    expect(() => parseConfig(candidate, { selectors: { has: throwing } })).toThrow('do not look')
  })
})

describe('size', () => {
  it('CFG-1 a cycle ends where the shape of a configuration ends', () => {
    const cycle: { [key: string]: unknown } = { concurrency: 1 }
    cycle.contracts = cycle
    cycle.methods = cycle
    cycle.global = cycle
    cycle.rate = cycle
    expect(pointersOf(cycle).length).toBeGreaterThan(5)
    expect(pointersOf({ global: cycle })).toContain('/global/contracts')
  })

  it('CFG-1 depth does not matter', () => {
    let deep: unknown = 1
    for (let depth = 0; depth < 100_000; depth += 1) deep = { methods: deep, rate: deep }
    expect(pointersOf({ contracts: { a: deep } })).toContain('/contracts/a/rate/methods')
    expect(pointersOf({ global: { concurrency: deep } })).toEqual(['/global/concurrency'])
  })

  it('CFG-1 a huge array is one issue, found without looking into it', () => {
    const huge: unknown[] = new Array(50_000_000)
    expect(issuesOf({ global: { concurrency: huge, rate: huge }, contracts: huge })).toHaveLength(3)
  })

  it('CFG-1 many issues under long ids share their text', () => {
    const settings = Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`s${i}`, 1]))
    const id = '/'.repeat(2048) // each character becomes two in a pointer
    const issues = issuesOf({ contracts: { [id]: { methods: { [id]: settings } } } })
    expect(issues).toHaveLength(50_000) // 400 MB if each pointer had its own text
    expect(issues[0]?.pointer).toBe(`/contracts/${'~1'.repeat(2048)}/methods/${'~1'.repeat(2048)}/s0`)
  })

  it('CFG-1 what is under an id that is too long stays unread', () => {
    const id = 'x'.repeat(2049)
    expect(issuesOf({ contracts: { [id]: { wrong: 1 } } })).toEqual([
      {
        pointer: `/contracts/${id}`,
        message: `must be an id of 1 to 2048 characters, got "${'x'.repeat(32)}"… (2049 characters)`,
      },
    ])
  })
})
