import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../src/config/parse.ts'
import type { Config, ConfigInput, RateConfig } from '../../src/config/types.ts'
import { UNLIMITED } from '../../src/kernel/concurrency.ts'
import { Kernel } from '../../src/kernel/kernel.ts'
import { type Compiled, compile } from '../../src/program/compile.ts'
import type { CallKeeper } from '../../src/program/program.ts'

const rate: RateConfig = { algorithm: 'fixed-window', permitLimit: 1, windowMs: 1 }
const keeper: CallKeeper = { release: () => undefined, closeBody: () => undefined }
const selectors = new Map(['tenant', 'region', 'client'].map((name) => [name, () => undefined]))
const compiled = (config: ConfigInput, kernel = new Kernel(), generation = 1): Compiled =>
  compile(parseConfig(config, { selectors }), generation, { kernel, keeper, selectors })
const full: ConfigInput = {
  queue: { maxQueuedCalls: 5 },
  global: { concurrency: 1, rate, partitions: { tenant: { concurrency: 1 } } },
  contracts: { '/a': { concurrency: 2, holdUntil: 'body', methods: { get: { concurrency: 3, rate } } } },
}

describe('compile', () => {
  it('PUB-5 changes nothing in the kernel: new states and limits are only staged', () => {
    const kernel = new Kernel()
    const first = compiled(full, kernel)
    expect(kernel.size).toBe(0)
    kernel.commit(first.staging)
    const { size } = kernel
    const global = kernel.concurrency(undefined, undefined)
    const { staging } = compiled({ global: { concurrency: 9 }, contracts: { '/b': { concurrency: 1 } } }, kernel, 2)
    expect([kernel.size, global?.limit, global?.named]).toEqual([size, 1, true])
    expect(staging.limits).toHaveLength(1)
  })

  it('STA-1 two generations are bound to the very same states', () => {
    const kernel = new Kernel()
    const first = compiled(full, kernel)
    kernel.commit(first.staging)
    const second = compiled({ ...full, queue: { maxQueuedCalls: 1 } }, kernel, 2)
    const [before, after] = [first, second].map(({ program }) => program.route('/a', 'get'))
    expect(after?.globalSlots).toBe(before?.globalSlots)
    expect(after?.methodSlots).toBe(before?.methodSlots)
    expect(after?.gates).toEqual(before?.gates)
    expect([second.staging.concurrencies, second.staging.rates, second.staging.pools]).toEqual([[], [], []])
    expect(second.staging.limits).toEqual([])
  })

  it('ADM-10 binds the gates of a route in judging order', () => {
    const { program } = compiled(full)
    const kinds = program.route('/a', 'get').gates.map((gate) => {
      if (gate.kind === 'resource') return `${gate.resource.scope.name} ${gate.resource.reason}`
      return gate.kind === 'pool' ? gate.pool.scope.name : gate.kind
    })
    expect(kinds).toEqual([
      'global concurrency',
      'global rate',
      'global#tenant',
      'contract:/a concurrency',
      'method:/a get concurrency',
      'method:/a get rate',
    ])
  })

  it('ADM-8 a scope occurs once on a route, and an unknown id has the scopes above it', () => {
    const { program } = compiled(full)
    for (const route of [program.route('/a', 'get'), program.route('/a', 'put'), program.route('/a', undefined)]) {
      expect(new Set(route.gates).size).toBe(route.gates.length)
      expect(new Set(route.scopes).size).toBe(route.scopes.length)
    }
    expect(program.route('/a', 'put')).toBe(program.route('/a', undefined))
    expect(program.route('/b', 'get')).toBe(program.route(undefined, undefined))
    expect(program.route(undefined, 'get').gates).toHaveLength(3)
  })

  it('ADM-2 a scope without concurrency is bound to the unlimited one, so that a route has one shape', () => {
    const kernel = new Kernel()
    const { program } = compiled({ contracts: { '/a': { methods: { get: { concurrency: 1 } } } } }, kernel)
    const route = program.route('/a', 'get')
    expect([route.globalSlots, route.contractSlots]).toEqual([kernel.unlimited, kernel.unlimited])
    expect(route.methodSlots).not.toBe(kernel.unlimited)
    expect(kernel.unlimited.limit).toBe(UNLIMITED)
  })

  it('ADM-2 a route is plain exactly when it has concurrency only', () => {
    const plain = (config: ConfigInput): boolean => compiled(config).program.route('/a', 'get').isPlain
    expect(plain({})).toBe(true)
    expect(plain({ global: { concurrency: 1 }, contracts: { '/a': { concurrency: 0 } } })).toBe(true)
    expect(plain({ contracts: { '/a': { rate } } })).toBe(false)
    expect(plain({ contracts: { '/b': { rate } } })).toBe(true)
    expect(plain({ global: { partitions: { tenant: { concurrency: 1 } } } })).toBe(false)
  })

  it("REL-1 a method's own holdUntil and delivery replace its contract's", () => {
    const delivery = { key: 'client', maxOpenBodies: 8, stallTimeoutMs: 5 }
    const { program } = compiled({
      contracts: {
        '/a': {
          holdUntil: 'body',
          delivery,
          methods: { own: { holdUntil: 'handler', delivery: { ...delivery, maxOpenBodies: 1 } }, other: {} },
        },
      },
    })
    const settings = ['own', 'other', undefined].map((method) => {
      const route = program.route('/a', method)
      return [route.holdUntil, route.delivery?.maxOpenBodies]
    })
    expect(settings).toEqual([
      ['handler', 1],
      ['body', 8],
      ['body', 8],
    ])
    expect(program.route(undefined, undefined)).toMatchObject({ holdUntil: 'handler', delivery: undefined })
  })

  it.each([
    [{ maxQueuedCalls: 0 }],
    [{ maxQueuedCalls: 1, maxQueuedBytes: 0 }],
    [{ maxQueuedCalls: 1, maxQueueDelayMs: 0 }],
  ])('ADM-10 a queue with %j is none', (queue) => {
    expect(compiled({ queue }).program.queue).toBeNull()
    expect(compiled({}).program.queue).toBeNull()
  })

  it('STA-1 partitions of different scopes, selectors and definitions are different pools', () => {
    const kernel = new Kernel()
    const partitions = { tenant: { concurrency: 1 }, region: { concurrency: 1 } }
    const { staging } = compiled({ global: { partitions }, contracts: { '/a': { partitions } } }, kernel)
    expect(staging.pools).toHaveLength(4)
    kernel.commit(staging)
    kernel.unnameAll()
    const other = { tenant: { concurrency: 2 }, region: { concurrency: 1 } }
    const again = compiled({ global: { partitions: other } }, kernel, 2)
    const pools = again.program
      .route(undefined, undefined)
      .gates.flatMap((gate) => (gate.kind === 'pool' ? [gate.pool] : []))
    expect(pools.map((pool) => [...kernel.pools()].includes(pool))).toEqual([false, true])
  })
})

describe('compile from a source', () => {
  const kernel = new Kernel()
  const first = compiled(
    { ...full, contracts: { ...full.contracts, '/b': { concurrency: 4, methods: { get: { rate }, put: {} } } } },
    kernel,
  )
  kernel.commit(first.staging)
  const workshop = { kernel, keeper, selectors }
  const { config, scopes } = first.program
  const next = (contracts: Config['contracts'], global = config.global): Compiled =>
    compile({ ...config, ...(global && { global }), ...(contracts && { contracts }) }, 2, workshop, first.program)

  it('PUB-3 binds only what is not the very configuration that the source was bound from', () => {
    const contracts = { ...config.contracts, '/a': { ...config.contracts?.['/a'], concurrency: 9 } }
    const { program, staging } = next(contracts)
    expect(program.scopes.global).toBe(scopes.global)
    expect(program.scopes.contracts.get('/b')).toBe(scopes.contracts.get('/b'))
    expect(program.scopes.contracts.get('/a')?.methods.get('get')).toBe(scopes.contracts.get('/a')?.methods.get('get'))
    expect(staging.limits).toEqual([{ state: kernel.concurrency('/a', undefined), limit: 9 }])
    expect(next(config.contracts).program.scopes.contracts).toBe(scopes.contracts)
  })

  it('PUB-6 routes are of their own program, and ask what its scopes ask', () => {
    const { program } = next(config.contracts, { concurrency: 5 })
    for (const [contract, method, names] of [
      ['/b', 'get', ['global', 'contract:/b', 'method:/b get']],
      ['/b', 'put', ['global', 'contract:/b']],
      ['/c', 'get', ['global']],
    ] as const) {
      const [before, after] = [first.program.route(contract, method), program.route(contract, method)]
      expect([before.program, after.program]).toEqual([first.program, program])
      expect([after.globalSlots, after.contractSlots, after.methodSlots]).toEqual([
        before.globalSlots,
        before.contractSlots,
        before.methodSlots,
      ])
      expect(after.scopes).toEqual(names)
      expect(before.gates.slice(3)).toEqual(after.gates.slice(1))
    }
  })

  it('PUB-2 what is left out is gone', () => {
    const { program } = next({ '/b': config.contracts?.['/b'] ?? {} })
    expect(program.route('/a', 'get')).toBe(program.route(undefined, undefined))
    expect([...program.scopes.contracts.keys()]).toEqual(['/b'])
  })
})

describe('a program', () => {
  it('PUB-7 is idle when nobody runs or waits under it', () => {
    const { program } = compiled(full)
    expect(program.isIdle).toBe(true)
    program.queued = 1
    expect(program.isIdle).toBe(false)
    program.queued = 0
    program.active = 1
    expect(program.isIdle).toBe(false)
  })
})
