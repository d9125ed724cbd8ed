import { describe, expect, it } from 'vitest'
import type { ConfigInput, QueueInput, RateConfig } from '../../src/config/types.ts'
import { expectQuiet, scopeOf, setup } from '../support/core.ts'

const algorithms: readonly (readonly [RateConfig['algorithm'], RateConfig])[] = [
  ['token-bucket', { algorithm: 'token-bucket', tokenLimit: 4, tokensPerPeriod: 1, replenishmentPeriodMs: 250 }],
  ['fixed-window', { algorithm: 'fixed-window', permitLimit: 4, windowMs: 1000 }],
  ['sliding-window', { algorithm: 'sliding-window', permitLimit: 4, windowMs: 1000, segmentsPerWindow: 4 }],
]
const queue: QueueInput = { maxQueuedCalls: 100, maxQueueDelayMs: 5000 }

describe.each(algorithms)('updates beside an unchanged %s', (_, rate) => {
  const config = (concurrency: number | undefined, policy: QueueInput | undefined = queue): ConfigInput => ({
    ...(policy === undefined ? {} : { queue: policy }),
    global: { ...(concurrency === undefined ? {} : { concurrency }), rate },
  })
  const changes: readonly (readonly [string, ConfigInput])[] = [
    ['growing concurrency', config(20)],
    ['shrinking concurrency', config(1)],
    ['removing concurrency', config(undefined)],
    ['closing the scope and opening it again', config(0)],
    [
      'every queue setting',
      config(10, { maxQueuedCalls: 1, maxQueuedBytes: 1, maxQueueDelayMs: 1, queueOneWayCalls: true }),
    ],
    ['removing the queue', { global: { concurrency: 10, rate } }],
    ['adding a contract', { ...config(10), contracts: { '/a': { concurrency: 3 } } }],
  ]

  it.each(changes)('STA-2 %s keeps what was consumed: no free burst, no fresh window', async (_change, candidate) => {
    const { core, clock, hold } = setup(config(10))
    clock.advance(130)
    for (let call = 0; call < 3; call += 1) hold().release()
    clock.advance(20)
    const before = core.snapshot().rates
    await core.update(candidate)
    expect(core.snapshot().rates).toEqual(before)
    await core.update(config(10))
    expect(core.snapshot().rates).toMatchObject([{ remaining: 1 }])
    hold().release()
    const refusal = hold({ oneWay: true }).refusal
    expect(refusal?.reason).toBe('one_way')
    await core.update({ global: { concurrency: 10, rate } })
    const first = rate.algorithm === 'token-bucket' ? 230 : 980
    expect(hold().refusal?.retryAfterMs).toBe(first)
    expectQuiet({ core, clock })
  })

  it('STA-2 many updates in a row neither spend nor give a permit', async () => {
    const { core, clock, hold } = setup(config(10))
    hold().release()
    hold().release()
    for (let update = 1; update <= 200; update += 1) await core.update(config((update % 7) + 1))
    expect(core.snapshot().rates).toMatchObject([{ remaining: 2 }])
    expectQuiet({ core, clock })
  })

  it('STA-2 a waiter of the old generation stays valid and starts at the instant of its permit', async () => {
    const { core, clock, hold, flush } = setup(config(10))
    for (let call = 0; call < 4; call += 1) hold().release()
    const waiting = hold()
    await core.update(config(3, { ...queue, maxQueueDelayMs: 10 }))
    await core.update(config(5))
    const newer = hold()
    const firstMs = rate.algorithm === 'token-bucket' ? 250 : 1000
    clock.advance(firstMs - 1)
    await flush()
    expect(waiting.waiting).toBe(true)
    clock.advance(1)
    await flush()
    expect(waiting.lease).toMatchObject({ generation: 1, waitedMs: firstMs })
    expect(newer.started).toBe(rate.algorithm !== 'token-bucket')
    clock.advance(250)
    await flush()
    waiting.release()
    newer.release()
    expectQuiet({ core, clock })
  })

  it('RAT-4 disable and enable is no free burst', () => {
    const { core, clock, hold } = setup(config(10))
    for (let call = 0; call < 3; call += 1) hold().release()
    core.disable()
    hold()
    core.enable(config(10))
    expect(core.snapshot().rates).toMatchObject([{ remaining: 1 }])
    core.disable()
    core.enable({ global: { rate } })
    expect(core.snapshot().rates).toMatchObject([{ remaining: 1 }])
    expectQuiet({ core, clock })
  })

  it('RAT-4 a rate that nobody names is kept until a new one would behave the same, and is gone then', () => {
    const { core, clock, hold } = setup(config(10))
    hold().release()
    core.disable()
    const cleanMs = rate.algorithm === 'token-bucket' ? 250 : 1000
    clock.advance(cleanMs - 1)
    expect(core.snapshot().rates).toHaveLength(1)
    clock.advance(1)
    expect(core.snapshot().rates).toEqual([])
    expectQuiet({ core, clock })
  })

  it('RAT-4 enabling with another definition starts that one fresh, and the old one is remembered meanwhile', () => {
    const other: RateConfig = { algorithm: 'fixed-window', permitLimit: 9, windowMs: 77 }
    const { core, clock, hold } = setup(config(10))
    for (let call = 0; call < 4; call += 1) hold().release()
    core.disable()
    core.enable({ global: { rate: other } })
    hold().release()
    core.disable()
    core.enable(config(10))
    expect(hold({ oneWay: true }).refusal?.reason).toBe('one_way')
    expect(core.snapshot().rates).toMatchObject([{ remaining: 0 }, { remaining: 8 }])
    expectQuiet({ core, clock })
  })

  it('STA-4 a waiter on the rate goes on while disabled, and keeps the state', async () => {
    const { core, clock, hold, flush } = setup(config(10))
    for (let call = 0; call < 4; call += 1) hold().release()
    const waiting = hold()
    core.disable()
    expect(core.snapshot()).toMatchObject({ state: 'disabled', queued: { calls: 1 }, rates: [{ waiting: 1 }] })
    clock.advance(1000)
    await flush()
    expect(waiting.lease.generation).toBe(1)
    waiting.release()
    clock.advance(2000)
    expect(core.snapshot()).toMatchObject({ rates: [], scopes: [], generations: [] })
    expectQuiet({ core, clock })
  })
})

describe('partitions across updates', () => {
  const rate: RateConfig = { algorithm: 'fixed-window', permitLimit: 3, windowMs: 1000 }
  const tenant = { concurrency: 2, rate, maxPartitions: 5 }
  const config = (concurrency: number, policy: QueueInput = queue): ConfigInput => ({
    queue: policy,
    global: { concurrency, partitions: { tenant } },
  })
  const selectors = { tenant: () => 'acme' }

  it('STA-1 the pool is the same after queue and concurrency updates: active entries and spent rates survive', async () => {
    const { core, clock, hold } = setup(config(10), { selectors })
    const running = hold()
    hold({ keys: { tenant: 'other' } }).release()
    for (const candidate of [
      config(3),
      config(7, { maxQueuedCalls: 1 }),
      { global: { partitions: { tenant } } },
      config(4),
    ]) {
      await core.update(candidate)
      expect(core.snapshot().partitions).toMatchObject([{ partitions: 2, active: 1 }])
    }
    const second = hold()
    expect(hold({ oneWay: true }).refusal).toMatchObject({ reason: 'one_way', scope: 'global#tenant' })
    second.release()
    hold().release() // the third of the window
    await core.update({ global: { partitions: { tenant } } })
    expect(hold().refusal?.reason).toBe('partition_rate')
    running.release()
    expectQuiet({ core, clock })
  })

  it('STA-1 a waiter in a partition is served by releases of any generation', async () => {
    const { core, clock, hold, flush } = setup(config(10), { selectors })
    const old = [hold(), hold()]
    const waiting = hold()
    await core.update(config(5))
    const newer = hold({ keys: { tenant: 'other' } })
    expect([newer.started, waiting.waiting]).toEqual([true, true])
    old[0]?.release()
    await flush()
    expect(waiting.started).toBe(true)
    for (const each of [old[1], waiting, newer]) each?.release()
    expectQuiet({ core, clock })
  })

  it('STA-4 disable and enable keep busy entries, and forget idle ones without debt only', async () => {
    const { core, clock, hold } = setup(config(10), { selectors })
    const running = hold()
    hold({ keys: { tenant: 'indebted' } }).release()
    core.disable()
    expect(core.snapshot().partitions).toMatchObject([{ partitions: 2, active: 1 }])
    clock.advance(1000)
    expect(core.snapshot().partitions).toMatchObject([{ partitions: 1, active: 1 }])
    core.enable(config(10))
    const second = hold()
    expect(hold({ oneWay: true }).refusal?.scope).toBe('global#tenant')
    running.release()
    second.release()
    core.disable()
    clock.advance(1000)
    expect(core.snapshot().partitions).toEqual([])
    expectQuiet({ core, clock })
  })

  it('PAR-2 a flood across updates stays bounded, and the known key works', async () => {
    const { core, clock, hold } = setup(config(10), { selectors })
    const known = hold()
    for (let flood = 0; flood < 500; flood += 1) {
      hold({ keys: { tenant: `flood ${flood}` } }).release()
      if (flood % 50 === 0) await core.update(config(10 + (flood % 3)))
    }
    expect(core.snapshot().partitions).toMatchObject([{ partitions: 5, active: 1 }])
    hold().release()
    known.release()
    expectQuiet({ core, clock })
  })
})

describe('queue settings across updates', () => {
  const config = (policy: QueueInput): ConfigInput => ({ queue: policy, global: { concurrency: 1 } })

  it('QUE-2 growing maxQueuedCalls admits more to the queue at once', async () => {
    const { core, clock, hold, flush } = setup(config({ maxQueuedCalls: 1 }))
    const running = hold()
    const waiting = [hold()]
    expect(hold().refusal?.reason).toBe('queue_calls')
    await core.update(config({ maxQueuedCalls: 3 }))
    waiting.push(hold(), hold())
    expect(hold().refusal?.reason).toBe('queue_calls')
    running.release()
    for (const each of waiting) {
      await flush()
      each.release()
    }
    expectQuiet({ core, clock })
  })

  it('QUE-2 shrinking below what is queued evicts nobody; new calls are refused until the ledger is below', async () => {
    const { core, clock, hold, flush } = setup(config({ maxQueuedCalls: 4 }))
    const running = hold()
    const waiting = [hold(), hold(), hold(), hold()]
    await core.update(config({ maxQueuedCalls: 2 }))
    expect(core.snapshot().queued.calls).toBe(4)
    for (const calls of [3, 2]) {
      expect(hold().refusal?.reason).toBe('queue_calls')
      waiting[calls]?.abort()
    }
    expect(hold().refusal?.reason).toBe('queue_calls') // two, and not below two
    running.release()
    await flush()
    const newer = hold()
    expect([waiting[0]?.started, newer.waiting]).toEqual([true, true])
    waiting[0]?.release()
    await flush()
    waiting[1]?.release()
    await flush()
    newer.release()
    expect(core.snapshot().queued).toEqual({ calls: 0, bytes: 0, oldestWaitMs: 0 })
    expectQuiet({ core, clock })
  })

  it('QUE-2 the same for bytes, in both directions', async () => {
    const { core, clock, hold } = setup(config({ maxQueuedCalls: 9, maxQueuedBytes: 100 }))
    const running = hold()
    const waiting = [hold({ bytes: 60 }), hold({ bytes: 40 })]
    await core.update(config({ maxQueuedCalls: 9, maxQueuedBytes: 50 }))
    expect(core.snapshot().queued).toMatchObject({ calls: 2, bytes: 100 })
    expect(hold({ bytes: 1 }).refusal?.reason).toBe('queue_bytes')
    waiting[0]?.abort() // 40 left
    expect(hold({ bytes: 11 }).refusal?.reason).toBe('queue_bytes')
    waiting.push(hold({ bytes: 10 }))
    await core.update(config({ maxQueuedCalls: 9, maxQueuedBytes: 1000 }))
    waiting.push(hold({ bytes: 950 }))
    expect(core.snapshot().queued).toMatchObject({ calls: 3, bytes: 1000 })
    for (const each of waiting) each.abort()
    running.release()
    expectQuiet({ core, clock })
  })

  it('QUE-2 removing the queue refuses new calls with the reason of the scope; waiters go on', async () => {
    const { core, clock, hold, flush } = setup(config({ maxQueuedCalls: 9 }))
    const running = hold()
    const waiting = hold({ bytes: 10 })
    await core.update({ global: { concurrency: 1 } })
    expect(hold().refusal).toEqual({ kind: 'refused', reason: 'concurrency', scope: 'global' })
    expect(core.snapshot().queued).toMatchObject({ calls: 1, bytes: 10 })
    running.release()
    await flush()
    expect(waiting.started).toBe(true)
    waiting.release()
    expectQuiet({ core, clock })
  })

  it('QUE-2 one ledger counts the waiters of all generations', async () => {
    const { core, clock, hold } = setup(config({ maxQueuedCalls: 3 }))
    const running = hold()
    const waiting = []
    for (let update = 0; update < 3; update += 1) {
      waiting.push(hold({ bytes: 1 }))
      await core.update(config({ maxQueuedCalls: 3 }))
    }
    expect(hold().refusal?.reason).toBe('queue_calls')
    expect(core.snapshot().generations).toEqual([
      { generation: 4, active: 0, queued: 0 },
      { generation: 1, active: 1, queued: 1 },
      { generation: 2, active: 0, queued: 1 },
      { generation: 3, active: 0, queued: 1 },
    ])
    for (const each of waiting) each.abort()
    running.release()
    expectQuiet({ core, clock })
  })

  it('QUE-3 waiters of both sides of a delay change keep their own delay, in arrival order for permits', async () => {
    const { core, clock, hold, flush } = setup(config({ maxQueuedCalls: 9, maxQueueDelayMs: 100 }))
    const running = hold()
    const short = hold()
    await core.update(config({ maxQueuedCalls: 9, maxQueueDelayMs: 900 }))
    const long = hold()
    await core.update(config({ maxQueuedCalls: 9, maxQueueDelayMs: 50 }))
    const shortest = hold()
    clock.advance(50)
    await flush()
    expect([short.waiting, long.waiting, shortest.refusal?.reason]).toEqual([true, true, 'queue_timeout'])
    clock.advance(50)
    running.release()
    await flush()
    expect([short.refusal?.reason, long.started]).toEqual(['queue_timeout', true])
    long.release()
    expectQuiet({ core, clock })
  })

  it('STA-1 no queue setting touches a concurrency state', async () => {
    const { core, clock, hold } = setup(config({ maxQueuedCalls: 9 }))
    const running = hold()
    for (const policy of [{ maxQueuedCalls: 0 }, { maxQueuedCalls: 5, maxQueueDelayMs: 7 }, { maxQueuedCalls: 1 }]) {
      await core.update(config(policy))
      expect(scopeOf(core, 'global')).toEqual({ limit: 1, active: 1, waiting: 0 })
    }
    running.release()
    expectQuiet({ core, clock })
  })
})
