import { describe, expect, it } from 'vitest'
import type { ConfigInput, PartitionInput, RateConfig } from '../../src/config/types.ts'
import { AdmissionConfigError } from '../../src/errors.ts'
import { expectQuiet, type Setup, setup } from '../support/core.ts'

const queue = { maxQueuedCalls: 100, maxQueueDelayMs: 1000 }
const rate: RateConfig = { algorithm: 'fixed-window', permitLimit: 1, windowMs: 1000 }
const of = (tenant: string | undefined): { keys: { tenant: string | undefined } } => ({ keys: { tenant } })
const pooled = (tenant: PartitionInput, config: ConfigInput = {}): Setup =>
  setup({ ...config, global: { ...config.global, partitions: { tenant } } }, { selectors: { tenant: () => 'unused' } })
const size = ({ core }: Pick<Setup, 'core'>): number => core.snapshot().partitions[0]?.partitions ?? 0

describe('partitions', () => {
  it('PAR-1 each key has its own permits', () => {
    const { core, clock, hold } = pooled({ concurrency: 1 })
    const [a, b] = [hold(of('a')), hold(of('b'))]
    expect([a.started, b.started]).toEqual([true, true])
    expect(hold(of('a')).refusal).toEqual({ kind: 'refused', reason: 'partition_concurrency', scope: 'global#tenant' })
    a.release()
    const again = hold(of('a'))
    again.release()
    b.release()
    expectQuiet({ core, clock })
  })

  it('PAR-1 each key has its own rate, and a refusal tells when to come back', () => {
    const { core, clock, hold } = pooled({ rate })
    hold(of('a')).release()
    clock.advance(300)
    hold(of('b')).release()
    const { refusal } = hold(of('a'))
    expect(refusal).toEqual({ kind: 'refused', reason: 'partition_rate', scope: 'global#tenant', retryAfterMs: 700 })
    expectQuiet({ core, clock })
  })

  it('PAR-3 undefined leaves the call unpartitioned', () => {
    const { core, clock, hold } = pooled({ concurrency: 1 })
    const calls = [hold(of(undefined)), hold({ keys: {} }), hold({ keys: () => undefined })]
    expect(calls.map((call) => call.lease.scopes)).toEqual([[], [], []])
    expect(size({ core })).toBe(0)
    for (const call of calls) call.release()
    expectQuiet({ core, clock })
  })

  it('PAR-3 a selector that throws fails that call with its own error, and nothing is held', () => {
    const error = { not: 'an Error' }
    const selectors = {
      tenant: () => 'acme',
      region: () => {
        throw error
      },
    }
    const partitions = { tenant: { concurrency: 1 }, region: { concurrency: 1 } }
    const { core, clock } = setup({ queue, global: { concurrency: 1, rate, partitions } }, { selectors })
    let thrown: unknown
    try {
      core.admit()
    } catch (caught) {
      thrown = caught
    }
    expect(thrown).toBe(error)
    expect(core.snapshot()).toMatchObject({ rates: [{ remaining: 1 }], totals: { admitted: 0 } })
    expect(core.snapshot().partitions.map((pool) => pool.partitions)).toEqual([0, 0])
    expectQuiet({ core, clock })
  })

  it('API-5 keys given with the call win over the selectors, as a record or as a function', () => {
    const partitions = { tenant: { concurrency: 1 } }
    const { core, clock, hold } = setup({ global: { partitions } }, { selectors: { tenant: () => 'from selector' } })
    const calls = [
      hold(),
      hold({ keys: { tenant: 'a' } }),
      hold({ keys: (name) => `${name} b` }),
      hold({ keys: { other: 'x' } }),
    ]
    expect(calls.every((call) => call.started)).toBe(true)
    expect(size({ core })).toBe(3) // the last one is unpartitioned
    expect(hold({ keys: { tenant: 'from selector' } }).refusal?.reason).toBe('partition_concurrency')
    for (const call of calls) call.release()
    expectQuiet({ core, clock })
  })

  it.each(['__proto__', 'constructor', 'toString', '', ' ', 'a,b', '😀'])('PAR-1 %j is a key like any other', (key) => {
    const { core, clock, hold } = pooled({ concurrency: 1 }, { queue })
    const record: { [name: string]: string } = Object.create(null)
    record.tenant = key
    const [running, waiting, other] = [hold({ keys: record }), hold(of(key)), hold(of(`${key}?`))]
    expect([running.started, waiting.waiting, other.started]).toEqual([true, true, true])
    waiting.abort()
    running.release()
    other.release()
    expectQuiet({ core, clock })
  })

  it('CFG-2 a selector that is undefined is not registered, and one that is no function is refused by name', () => {
    const config: ConfigInput = { global: { partitions: { tenant: { concurrency: 1 } } } }
    expect(() => setup(config, { selectors: { tenant: undefined } })).toThrow(AdmissionConfigError)
    expect(setup({}, { selectors: { tenant: undefined } }).core.plan({}).refusals).toEqual([])
    for (const selector of ['null', '"tenant"', '{}']) {
      const selectors = JSON.parse(`{ "tenant": ${selector} }`)
      expect(() => setup({}, { selectors })).toThrow(/^Cannot register selector 'tenant': must be a function, is /)
    }
  })

  it('CFG-2 a key that only the prototype of the record has is no key', () => {
    const { core, clock, hold } = setup(
      { global: { partitions: { toString: { concurrency: 1 } } } },
      { selectors: { toString: () => 'unused' } },
    )
    const calls = [hold({ keys: {} }), hold({ keys: {} })]
    expect(calls.every((call) => call.started)).toBe(true)
    for (const call of calls) call.release()
    expectQuiet({ core, clock })
  })

  it('PAR-1 a key is forgotten idleTimeoutMs after its last call', () => {
    const { core, clock, hold } = pooled({ concurrency: 1, idleTimeoutMs: 500 })
    const call = hold(of('a'))
    clock.advance(10_000)
    expect(size({ core })).toBe(1)
    call.release()
    clock.advance(10_000)
    expect(size({ core })).toBe(0)
    expectQuiet({ core, clock })
  })

  it('PAR-1 a waiter keeps its key', async () => {
    const { core, clock, hold, flush } = pooled(
      { concurrency: 1, idleTimeoutMs: 1 },
      { queue: { ...queue, maxQueueDelayMs: 60_000 }, global: { concurrency: 1 } },
    )
    const running = hold(of('a'))
    const waiting = hold(of('b'))
    clock.advance(30_000)
    expect(size({ core })).toBe(2)
    running.release()
    await flush()
    waiting.release()
    clock.advance(10)
    expect(size({ core })).toBe(0)
    expectQuiet({ core, clock })
  })

  it('PAR-1 a key in rate debt is kept beyond its idle timeout', () => {
    const { core, clock, hold } = pooled({ rate: { ...rate, windowMs: 10_000 }, idleTimeoutMs: 100 })
    hold(of('a')).release()
    clock.advance(9_999)
    expect(size({ core })).toBe(1)
    expect(hold(of('a')).refusal?.retryAfterMs).toBe(1)
    clock.advance(1)
    hold(of('a')).release()
    expectQuiet({ core, clock })
  })

  it('PAR-2 at maxPartitions the key that has been idle longest makes room', () => {
    const { core, clock, hold } = pooled({ concurrency: 1, maxPartitions: 3 })
    for (const key of ['a', 'b', 'c']) {
      hold(of(key)).release()
      clock.advance(1)
    }
    const a = hold(of('a')) // used again: b is the oldest now
    a.release()
    clock.advance(1)
    const d = hold(of('d'))
    const stay = [hold(of('a')), hold(of('c'))]
    expect(size({ core })).toBe(3)
    expect(hold(of('b')).refusal).toEqual({ kind: 'refused', reason: 'partition_limit', scope: 'global#tenant' })
    for (const each of [d, ...stay]) each.release()
    expectQuiet({ core, clock })
  })

  it('PAR-2 if every key is busy the call is refused, and known keys keep working', () => {
    const { core, clock, hold } = pooled({ concurrency: 2, maxPartitions: 2 })
    const calls = [hold(of('a')), hold(of('b'))]
    expect(hold(of('c')).refusal?.reason).toBe('partition_limit')
    calls.push(hold(of('a')))
    expect(calls.every((call) => call.started)).toBe(true)
    for (const each of calls) each.release()
    const c = hold(of('c'))
    expect(c.started).toBe(true)
    c.release()
    expectQuiet({ core, clock })
  })

  it('PAR-2 a call refused for partition_limit does not queue', () => {
    const { core, clock, hold } = pooled({ concurrency: 1, maxPartitions: 1 }, { queue })
    const running = hold(of('a'))
    expect(hold(of('b')).refusal?.reason).toBe('partition_limit')
    const waiting = hold(of('a'))
    expect(waiting.waiting).toBe(true)
    waiting.abort()
    running.release()
    expectQuiet({ core, clock })
  })

  it('PAR-2 a flood of random keys is bounded, and busy and indebted keys of honest callers go on as they were', () => {
    const { core, clock, hold } = pooled({ concurrency: 1, maxPartitions: 50 })
    const honest = Array.from({ length: 10 }, (_, index) => hold(of(`honest ${index}`)))
    for (let flood = 0; flood < 5000; flood += 1) {
      hold(of(`flood ${flood}`)).release()
      if (flood % 500 === 0) expect(size({ core })).toBeLessThanOrEqual(50)
    }
    expect(size({ core })).toBe(50)
    for (let index = 0; index < 10; index += 1) {
      expect(hold(of(`honest ${index}`)).refusal?.reason).toBe('partition_concurrency')
    }
    for (const call of honest) call.release()
    hold(of('honest 3')).release()
    expectQuiet({ core, clock })
  })

  it('PAR-2 a flood with a queue leaves neither lanes nor partitions behind', () => {
    const { core, clock, hold } = pooled({ concurrency: 1, maxPartitions: 100 }, { queue, global: { concurrency: 0 } })
    for (let flood = 0; flood < 3000; flood += 1) {
      const call = hold(of(`flood ${flood}`))
      expect(call.waiting).toBe(true)
      call.abort()
    }
    expect(size({ core })).toBeLessThanOrEqual(100)
    clock.advance(120_000)
    expect(size({ core })).toBe(0)
    expectQuiet({ core, clock })
  })

  it('PAR-4 if none can go without loss, the idle key with the least remaining debt makes room', () => {
    const { core, clock, hold } = pooled({ rate, maxPartitions: 2 })
    hold(of('first')).release()
    clock.advance(100)
    hold(of('second')).release()
    clock.advance(100)
    hold(of('third')).release() // first has 800 ms of debt left, second 900
    expect(hold(of('second')).refusal?.reason).toBe('partition_rate')
    expect(size({ core })).toBe(2)
    const first = hold(of('first')) // forgotten, so it starts anew
    expect(first.started).toBe(true)
    first.release()
    expectQuiet({ core, clock })
  })

  it('PAR-4 with onPartitionLimit refuse no debt is forgotten: the new key is refused', () => {
    const { core, clock, hold } = pooled({ rate, maxPartitions: 2, onPartitionLimit: 'refuse' })
    hold(of('first')).release()
    hold(of('second')).release()
    expect(hold(of('third')).refusal).toEqual({ kind: 'refused', reason: 'partition_limit', scope: 'global#tenant' })
    expect(hold(of('first')).refusal?.reason).toBe('partition_rate')
    clock.advance(1000)
    hold(of('third')).release()
    expectQuiet({ core, clock })
  })

  it('PAR-4 with evict only busy keys refuse', () => {
    const { core, clock, hold } = pooled({ concurrency: 1, rate, maxPartitions: 2 })
    const [busy, idle] = [hold(of('busy')), hold(of('idle'))]
    expect(hold(of('new')).refusal?.reason).toBe('partition_limit')
    idle.release()
    const made = hold(of('new'))
    expect(made.started).toBe(true)
    expect(hold(of('busy')).refusal?.reason).toBe('partition_concurrency')
    made.release()
    busy.release()
    expectQuiet({ core, clock })
  })

  it('PAR-4 a call refused elsewhere evicts nobody', () => {
    const { core, clock, hold } = setup(
      {
        global: { partitions: { tenant: { rate, maxPartitions: 1 } } },
        contracts: { '/closed': { concurrency: 0 } },
      },
      { selectors: { tenant: () => 'unused' } },
    )
    hold(of('known')).release()
    expect(hold({ ...of('new'), contract: '/closed' }).refusal?.scope).toBe('contract:/closed')
    expect(hold(of('known')).refusal?.reason).toBe('partition_rate')
    expectQuiet({ core, clock })
  })

  it('ADM-5 a waiter for one key starts when that key has room, not when another has', async () => {
    const { core, clock, hold, flush } = pooled({ concurrency: 1 }, { queue })
    const [a, b] = [hold(of('a')), hold(of('b'))]
    const [waitsForA, waitsForB] = [hold(of('a')), hold(of('b'))]
    b.release()
    await flush()
    expect([waitsForA.started, waitsForB.started]).toEqual([false, true])
    a.release()
    await flush()
    for (const call of [waitsForA, waitsForB]) call.release()
    expectQuiet({ core, clock })
  })

  it('ADM-5 the rate of a key refills for its own waiters, one timer for all of them', async () => {
    const { core, clock, hold, flush } = pooled({ rate: { ...rate, windowMs: 100 } }, { queue })
    const keys = ['a', 'b', 'c']
    for (const key of keys) hold(of(key)).release()
    const waiting = keys.map((key) => hold(of(key)))
    expect(clock.pending).toBe(1)
    clock.advance(100)
    await flush()
    expect(waiting.map((call) => call.started)).toEqual([true, true, true])
    for (const call of waiting) call.release()
    expectQuiet({ core, clock })
  })

  it('API-4 the pool shows its keys, and the calls that run and wait in all of them', async () => {
    const { core, clock, hold, flush } = pooled({ concurrency: 1, maxPartitions: 7 }, { queue })
    const calls = [hold(of('a')), hold(of('a')), hold(of('b')), hold(of('a'))]
    expect(core.snapshot().partitions).toEqual([
      {
        scope: 'global#tenant',
        current: true,
        selector: 'tenant',
        partitions: 2,
        maxPartitions: 7,
        limit: 1,
        active: 2,
        waiting: 2,
      },
    ])
    for (const call of calls) {
      call.release()
      await flush()
    }
    expectQuiet({ core, clock })
  })
})
