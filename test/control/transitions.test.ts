import { describe, expect, it } from 'vitest'
import type { ConfigInput, PartitionInput, RateConfig, ScopeInput } from '../../src/config/types.ts'
import { AdmissionConfigError, UnsupportedTransitionError } from '../../src/errors.ts'
import { errorOf, expectQuiet, type Setup, setup } from '../support/core.ts'

const bucket: RateConfig = { algorithm: 'token-bucket', tokenLimit: 5, tokensPerPeriod: 1, replenishmentPeriodMs: 100 }
const fixed: RateConfig = { algorithm: 'fixed-window', permitLimit: 5, windowMs: 500 }
const sliding: RateConfig = { algorithm: 'sliding-window', permitLimit: 5, windowMs: 500, segmentsPerWindow: 5 }
const tenant: PartitionInput = { concurrency: 2, rate: fixed, maxPartitions: 100, idleTimeoutMs: 1000 }
const selectors = { tenant: () => 'acme', region: () => 'eu', client: () => 'c', other: () => 'o' }

const scopes: readonly (readonly [pointer: string, wrap: (scope: ScopeInput) => ConfigInput])[] = [
  ['/global', (scope) => ({ global: { concurrency: 9, ...scope } })],
  ['/contracts/~1a~0b', (scope) => ({ contracts: { '/a~b': { concurrency: 9, ...scope } } })],
  [
    '/contracts/~1a/methods/GET ~1a',
    (scope) => ({ contracts: { '/a': { methods: { 'GET /a': { concurrency: 9, ...scope } } } } }),
  ],
]
const call = { contract: '/a', method: 'GET /a' }

type Case = readonly [what: string, path: string, from: ScopeInput, to: ScopeInput]
const rateCases = ([bucket, fixed, sliding] as const).flatMap((rate): Case[] => [
  [`adding a ${rate.algorithm}`, '/rate', {}, { rate }],
  [`removing a ${rate.algorithm}`, '/rate', { rate }, {}],
  ...[bucket, fixed, sliding]
    .filter((other) => other !== rate)
    .map((other): Case => [`${rate.algorithm} to ${other.algorithm}`, '/rate', { rate }, { rate: other }]),
  ...Object.entries(rate)
    .filter(([setting]) => setting !== 'algorithm')
    .map(([setting, value]): Case => {
      const changed = { ...rate, [setting]: Number(value) * 2 }
      return [`${setting} of a ${rate.algorithm}`, '/rate', { rate }, { rate: changed }]
    }),
])
const partitions = (settings: PartitionInput): ScopeInput => ({ partitions: { tenant: settings } })
const partitionCases: readonly Case[] = [
  ['adding a partition', '/partitions/tenant', {}, partitions(tenant)],
  ['removing a partition', '/partitions/tenant', partitions(tenant), {}],
  ['removing all partitions', '/partitions/tenant', partitions(tenant), { partitions: {} }],
  ['adding a second partition', '/partitions/region', partitions(tenant), { partitions: { tenant, region: tenant } }],
  ['maxPartitions', '/partitions/tenant', partitions(tenant), partitions({ ...tenant, maxPartitions: 101 })],
  ['idleTimeoutMs', '/partitions/tenant', partitions(tenant), partitions({ ...tenant, idleTimeoutMs: 1001 })],
  ['onPartitionLimit', '/partitions/tenant', partitions(tenant), partitions({ ...tenant, onPartitionLimit: 'refuse' })],
  ['its concurrency', '/partitions/tenant', partitions(tenant), partitions({ ...tenant, concurrency: 3 })],
  [
    'removing its concurrency',
    '/partitions/tenant',
    partitions(tenant),
    partitions({ ...tenant, concurrency: undefined } as never),
  ],
  ['its rate', '/partitions/tenant', partitions(tenant), partitions({ ...tenant, rate: { ...fixed, windowMs: 501 } })],
  ['the algorithm of its rate', '/partitions/tenant', partitions(tenant), partitions({ ...tenant, rate: sliding })],
]

/** A core in use, so that a change would show: one call holds, one waits, a rate is half spent. */
function inUse(config: ConfigInput): Setup & { finish(): void } {
  const made = setup({ queue: { maxQueuedCalls: 9, maxQueueDelayMs: 60_000 }, ...config }, { selectors })
  const { core, clock, hold } = made
  const others = [hold({ ...call, keys: { tenant: 'x' } }), hold({ contract: '/a~b', keys: {} })]
  const held = [hold(call), hold(call), hold(call)]
  clock.advance(10)
  core.snapshot()
  return {
    ...made,
    finish(): void {
      const calls = [...others, ...held]
      for (const each of calls) each.abort()
      for (const each of calls) if (each.started) each.release()
      clock.advance(0)
    },
  }
}

async function expectRefused(from: ConfigInput, to: ConfigInput, paths: readonly string[]): Promise<void> {
  const made = inUse(from)
  const { core, clock, finish } = made
  const candidate = { queue: { maxQueuedCalls: 1 }, ...to }
  const before = core.snapshot()
  const timers = clock.pending
  const error = await errorOf(core.update(candidate))
  expect(error).toBeInstanceOf(UnsupportedTransitionError)
  expect(error).toHaveProperty('paths', paths)
  expect(core.plan(candidate).refusals).toEqual(paths)
  expect(core.snapshot()).toEqual(before)
  expect([core.generation, clock.pending]).toEqual([1, timers])
  finish()
  expectQuiet(made)
}

describe.each(scopes)('an update that is refused at %s', (pointer, wrap) => {
  it.each([...rateCases, ...partitionCases])(
    'PUB-9 %s leaves program and state untouched',
    async (_, path, from, to) => {
      // The concurrency of the scope changes along with it, and must not show either.
      await expectRefused(wrap(from), wrap({ ...to, concurrency: 1 }), [`${pointer}${path}`])
    },
  )
})

describe('transitions', () => {
  it('PUB-9 lists every offending path, in document order', async () => {
    await expectRefused(
      {
        global: { rate: bucket },
        contracts: {
          '/a': { rate: fixed, methods: { 'GET /a': { partitions: { tenant } } } },
          '/b': { rate: sliding },
        },
      },
      {
        global: { rate: fixed },
        contracts: { '/a': { rate: sliding, methods: { 'GET /a': {} } }, '/c': { partitions: { region: tenant } } },
      },
      [
        '/global/rate',
        '/contracts/~1a/rate',
        '/contracts/~1a/methods/GET ~1a/partitions/tenant',
        '/contracts/~1c/partitions/region',
        '/contracts/~1b/rate',
      ],
    )
  })

  it.each<[string, ConfigInput, ConfigInput, string]>([
    ['a contract that has a rate', { contracts: { '/a': { rate: fixed } } }, {}, '/contracts/~1a/rate'],
    [
      'a contract that has partitions',
      { contracts: { '/a': partitions(tenant) } },
      {},
      '/contracts/~1a/partitions/tenant',
    ],
    [
      'a contract whose method has a rate',
      { contracts: { '/a': { concurrency: 1, methods: { 'GET /a': { rate: fixed } } } } },
      { contracts: {} },
      '/contracts/~1a/methods/GET ~1a/rate',
    ],
    [
      'a method that has a rate',
      { contracts: { '/a': { methods: { 'GET /a': { rate: fixed } } } } },
      { contracts: { '/a': { methods: {} } } },
      '/contracts/~1a/methods/GET ~1a/rate',
    ],
    ['the global scope that has a rate', { global: { rate: fixed } }, {}, '/global/rate'],
  ])('PUB-12 removing %s counts as removing the rate or partition', async (_, from, to, path) => {
    await expectRefused(from, to, [path])
  })

  it('PUB-9 changing the key of a delivery is refused; its other settings, adding and removing it are not', async () => {
    const delivery = { key: 'client', maxOpenBodies: 8, stallTimeoutMs: 30_000 }
    await expectRefused(
      { contracts: { '/a': { delivery } } },
      { contracts: { '/a': { delivery: { ...delivery, key: 'other' } } } },
      ['/contracts/~1a/delivery/key'],
    )
    await expectRefused(
      { contracts: { '/a': { methods: { 'GET /a': { delivery } } } } },
      { contracts: { '/a': { methods: { 'GET /a': { delivery: { ...delivery, key: 'other', maxOpenBodies: 1 } } } } } },
      ['/contracts/~1a/methods/GET ~1a/delivery/key'],
    )
    const { core } = setup({ contracts: { '/a': {} } }, { selectors })
    for (const settings of [delivery, { ...delivery, maxOpenBodies: 1 }, { ...delivery, stallTimeoutMs: 5 }]) {
      await core.update({ contracts: { '/a': { delivery: settings } } })
    }
    await core.update({ contracts: { '/a': {} } })
    expect(core.generation).toBe(5)
  })

  it('PUB-9 holdUntil changes are supported and seen by the next call', async () => {
    const { core, clock, hold } = setup({ contracts: { '/a': { holdUntil: 'body' } } })
    const before = hold(call)
    await core.update({ contracts: { '/a': { methods: { 'GET /a': { holdUntil: 'body' } } } } })
    const [route, other] = [hold(call), hold({ contract: '/a' })]
    expect([before, route, other].map((each) => each.lease.holdUntil)).toEqual(['body', 'body', 'handler'])
    for (const each of [before, route, other]) each.release()
    expectQuiet({ core, clock })
  })

  it('PUB-9 the same rates and partitions in another spelling are no change', async () => {
    const { core } = setup({ global: { rate: bucket, partitions: { tenant: { concurrency: 1 } } } }, { selectors })
    const reordered = Object.fromEntries(Object.entries(bucket).reverse()) as never
    const spelled = { concurrency: 1, maxPartitions: 10_000, idleTimeoutMs: 60_000, onPartitionLimit: 'evict' } as const
    await core.update({ global: { partitions: { tenant: spelled }, rate: reordered } })
    expect(core.generation).toBe(2)
  })

  it('PUB-9 while disabled every rate and partition is welcome', () => {
    const { core } = setup({ global: { rate: bucket } }, { selectors })
    core.disable()
    expect(core.plan({ global: { rate: fixed, partitions: { tenant } } }).refusals).toEqual([])
    core.enable({ global: { rate: fixed, partitions: { tenant } } })
    expect(core.generation).toBe(2)
  })

  it('CFG-1 an invalid candidate changes nothing, whether it comes by update, enable or plan', async () => {
    const made = inUse({ global: { concurrency: 1, rate: fixed } })
    const { core, finish } = made
    const wrong = { global: { concurrency: -1 }, unknown: 1, queue: { maxQueuedCalls: 'many' } } as never
    const before = core.snapshot()
    const error = await errorOf(core.update(wrong))
    expect(error).toBeInstanceOf(AdmissionConfigError)
    expect(error).toHaveProperty('issues.length', 3)
    await expect(core.update(() => wrong)).rejects.toThrow(AdmissionConfigError)
    await expect(core.update(async () => wrong)).rejects.toThrow(AdmissionConfigError)
    expect(() => core.plan(wrong)).toThrow(AdmissionConfigError)
    expect(core.snapshot()).toEqual(before)
    finish()
    expectQuiet(made)
    core.disable()
    expect(() => core.enable(wrong)).toThrow(AdmissionConfigError)
    expect([core.state, core.generation]).toEqual(['disabled', 1])
  })

  it('CFG-2 a selector that is not registered is refused and nothing changes', async () => {
    const { core } = setup({ global: { concurrency: 1 } }, { selectors: {} })
    const before = core.snapshot()
    await expect(core.update({ global: { partitions: { tenant } } })).rejects.toThrow(AdmissionConfigError)
    expect(core.snapshot()).toEqual(before)
  })

  it('CFG-4 the program keeps its own frozen copy of the candidate', async () => {
    const candidate = { global: { concurrency: 1 }, contracts: { '/a': { concurrency: 2 } } }
    const { core, clock, hold } = setup(candidate)
    candidate.global.concurrency = 100
    candidate.contracts['/a'].concurrency = 100
    expect(core.config).toMatchObject({ global: { concurrency: 1 }, contracts: { '/a': { concurrency: 2 } } })
    expect([Object.isFrozen(core.config), Object.isFrozen(core.config?.contracts?.['/a'])]).toEqual([true, true])
    const running = hold()
    expect(hold().refusal?.reason).toBe('concurrency')
    await core.update((current) => {
      expect(() => Object.assign(current, { global: { concurrency: 9 } })).toThrow(TypeError)
      return current
    })
    running.release()
    expectQuiet({ core, clock })
  })
})
