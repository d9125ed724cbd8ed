import { describe, expect, it } from 'vitest'
import type { Call } from '../../src/call.ts'
import type { ConfigInput, ScopeInput } from '../../src/config/types.ts'
import { expectQuiet, holdCall, reasonOf, scopeOf, setup, watch } from '../support/core.ts'

const once = { algorithm: 'fixed-window', permitLimit: 1, windowMs: 1000 } as const
const order: Call = { contract: '/orders', method: 'POST /orders' }
const threeScopes = (global: ScopeInput, contract: ScopeInput, method: ScopeInput): ConfigInput => ({
  global,
  contracts: { '/orders': { ...contract, methods: { 'POST /orders': method } } },
})

describe('admit', () => {
  it('ADM-1 takes a permit of every scope in one step and gives all of them back', () => {
    const { core, clock, hold } = setup(threeScopes({ concurrency: 3 }, { concurrency: 2 }, { concurrency: 1 }))
    const call = hold(order)
    const active = ['global', 'contract:/orders', 'method:/orders POST /orders'].map(
      (name) => scopeOf(core, name).active,
    )
    expect(active).toEqual([1, 1, 1])
    call.release()
    expectQuiet({ core, clock })
  })

  it('ADM-1 a call matches only the scopes above an id that the configuration does not name', () => {
    const { core, clock, hold } = setup(threeScopes({ concurrency: 9 }, { concurrency: 9 }, { concurrency: 9 }))
    const calls = [
      {},
      { contract: '/other' },
      { method: 'POST /orders' },
      { contract: '/orders' },
      { contract: '/orders', method: 'GET /orders' },
      order,
    ]
    const held = calls.map((call) => hold(call))
    const active = ['global', 'contract:/orders', 'method:/orders POST /orders'].map(
      (name) => scopeOf(core, name).active,
    )
    expect(active).toEqual([6, 3, 1])
    for (const each of held) each.release()
    expectQuiet({ core, clock })
  })

  it.each([
    ['global', 0],
    ['contract:/orders', 1],
    ['method:/orders POST /orders', 2],
  ] as const)('ADM-1 a call refused by %s spends no rate permit and creates no partition anywhere', (scope, closed) => {
    const limits = (index: number): ScopeInput => ({
      ...(index === closed ? { concurrency: 0 } : {}),
      rate: { ...once, permitLimit: 5 },
      partitions: { tenant: { concurrency: 1 } },
    })
    const { core, clock } = setup(threeScopes(limits(0), limits(1), limits(2)), { selectors: { tenant: () => 'acme' } })
    expect(watch(core.admit(order)).refusal).toEqual({ kind: 'refused', reason: 'concurrency', scope })
    const { rates, partitions } = core.snapshot()
    expect(rates.map((rate) => rate.remaining)).toEqual([5, 5, 5])
    expect(partitions.map((pool) => pool.partitions)).toEqual([0, 0, 0])
    expectQuiet({ core, clock })
  })

  it('ADM-1 a call refused by a rate holds no permit of a scope that had room', () => {
    const { core, clock, hold } = setup(threeScopes({ concurrency: 5 }, { concurrency: 5 }, { rate: once }))
    hold(order).release()
    expect(hold(order).refusal?.reason).toBe('rate')
    expectQuiet({ core, clock })
  })

  it('ADM-9 a call that is aborted already is refused and spends nothing', () => {
    const { core, clock } = setup({ global: { concurrency: 1, rate: once } })
    const answer = core.admit({ signal: AbortSignal.abort() })
    expect(answer).toEqual({ kind: 'refused', reason: 'aborted' })
    expect(core.snapshot().rates).toMatchObject([{ remaining: 1 }])
    expectQuiet({ core, clock })
  })

  it('ADM-9 an abort after the grant does not take the permits away', () => {
    const { core, clock, hold } = setup({ global: { concurrency: 1 } })
    const call = hold()
    call.abort()
    expect(scopeOf(core, 'global').active).toBe(1)
    call.release()
    expectQuiet({ core, clock })
  })

  it('ADM-9 a signal function that yields an aborted signal keeps the call out of the queue', () => {
    const { core, clock, hold } = setup({ global: { concurrency: 1 }, queue: { maxQueuedCalls: 1 } })
    const running = hold()
    expect(hold({ signal: () => AbortSignal.abort() }).refusal).toEqual({ kind: 'refused', reason: 'aborted' })
    expect(core.snapshot().queued.calls).toBe(0)
    running.release()
    expectQuiet({ core, clock })
  })

  it('RUN-2 the signal function is asked only when the call really queues', async () => {
    let asked = 0
    const signal = (): undefined => {
      asked += 1
      return undefined
    }
    const { core, clock, hold, flush } = setup({ global: { concurrency: 1 }, queue: { maxQueuedCalls: 1 } })
    const running = hold({ signal })
    expect(hold({ signal, oneWay: true }).refusal?.reason).toBe('one_way')
    expect(asked).toBe(0)
    const waiting = hold({ signal })
    expect(asked).toBe(1)
    expect(hold({ signal }).refusal?.reason).toBe('queue_calls')
    expect(asked).toBe(1)
    running.release()
    await flush()
    waiting.release()
    expectQuiet({ core, clock })
  })

  it('ADM-7 a release counts once, however often it is called', () => {
    const { core, clock, hold } = setup({ global: { concurrency: 2 } })
    const [first, second] = [hold(), hold()]
    first.release()
    first.release()
    first.lease[Symbol.dispose]()
    expect(scopeOf(core, 'global').active).toBe(1)
    second.release()
    expectQuiet({ core, clock })
  })

  it('ADM-7 a lease is released at the end of a using block, also when the block throws', () => {
    const { core, clock } = setup({ global: { concurrency: 1 } })
    const run = (): void => {
      const answer = core.admit()
      if (!('kind' in answer) || answer.kind !== 'admitted') throw new Error('not admitted')
      using _lease = answer
      expect(scopeOf(core, 'global').active).toBe(1)
      throw new Error('handler failed')
    }
    expect(run).toThrow('handler failed')
    expectQuiet({ core, clock })
  })

  it('API-1 an immediate answer is no promise', () => {
    const { core, clock, hold } = setup({ global: { concurrency: 1 } })
    const running = hold()
    expect([running.immediate, hold().immediate]).toEqual([true, true])
    running.release()
    expectQuiet({ core, clock })
  })

  it('API-1 a lease tells its generation, how long the call waited, and the scopes', async () => {
    const config: ConfigInput = {
      ...threeScopes(
        { concurrency: 1 },
        { partitions: { tenant: { concurrency: 1 } } },
        { rate: { ...once, permitLimit: 9 } },
      ),
      queue: { maxQueuedCalls: 1 },
    }
    const { core, clock, hold, flush } = setup(config, { selectors: { tenant: () => 'acme' } })
    const running = hold(order)
    const waiting = hold(order)
    clock.advance(25)
    running.release()
    await flush()
    const { kind, generation, waitedMs, scopes } = waiting.lease
    expect({ kind, generation, waitedMs }).toEqual({ kind: 'admitted', generation: 1, waitedMs: 25 })
    expect(scopes).toEqual(['global', 'contract:/orders#tenant', 'method:/orders POST /orders'])
    expect(running.lease.waitedMs).toBe(0)
    waiting.release()
    expectQuiet({ core, clock })
  })

  it('API-5 a bound route decides as admit does and follows publications', async () => {
    const { core, clock } = setup(threeScopes({ concurrency: 5 }, { concurrency: 1 }, {}))
    const route = core.route('/orders', 'POST /orders')
    const first = watch(route.admit())
    expect(watch(route.admit()).refusal).toEqual({ kind: 'refused', reason: 'concurrency', scope: 'contract:/orders' })
    await core.update(threeScopes({ concurrency: 5 }, { concurrency: 2 }, {}))
    const second = watch(route.admit())
    expect(second.lease.generation).toBe(2)
    core.disable()
    expect(watch(route.admit()).lease.scopes).toEqual([])
    core.enable(threeScopes({ concurrency: 2 }, {}, {}))
    expect(watch(route.admit()).refusal?.scope).toBe('global')
    first.release()
    second.release()
    expectQuiet({ core, clock })
  })
})

/** One thing that can lack room, in judging order; a first call takes it all. */
const gates: readonly (readonly [scope: 0 | 1 | 2, limits: ScopeInput, reason: string, suffix: string])[] = (
  [0, 1, 2] as const
).flatMap((scope) => [
  [scope, { concurrency: 1 }, 'concurrency', ''] as const,
  [scope, { rate: once }, 'rate', ''] as const,
  [scope, { partitions: { lane: { concurrency: 1 } } }, 'partition_concurrency', '#lane'] as const,
  [scope, { partitions: { tenant: { rate: once } } }, 'partition_rate', '#tenant'] as const,
])
const names = ['global', 'contract:/orders', 'method:/orders POST /orders'] as const
const merge = (from: number): [ScopeInput, ScopeInput, ScopeInput] => {
  const scopes: [ScopeInput, ScopeInput, ScopeInput] = [{}, {}, {}]
  for (const [scope, limits] of gates.slice(from)) {
    const before = scopes[scope]
    const partitions = { ...before.partitions, ...limits.partitions }
    scopes[scope] = { ...before, ...limits, ...(Object.keys(partitions).length > 0 ? { partitions } : {}) }
  }
  return scopes
}
const selectors = { tenant: () => 'acme', lane: () => 'fast' }

describe('the order of reasons', () => {
  it.each(gates.map(([scope, , reason, suffix], index) => [reason, `${names[scope]}${suffix}`, index] as const))(
    'ADM-10 %s of %s is named before everything that is judged after it',
    (reason, scope, index) => {
      const { core, clock, hold } = setup(threeScopes(...merge(index)), { selectors })
      const first = hold(order)
      const { refusal } = hold(order)
      expect(refusal).toMatchObject({ reason, scope })
      expect(refusal?.retryAfterMs).toBe(reason.endsWith('rate') ? 1000 : undefined)
      first.release()
      expectQuiet({ core, clock })
    },
  )

  it('ADM-10 stopped comes before draining, draining before aborted, aborted before any limit; none names a scope', () => {
    const { core, hold } = setup({ global: { concurrency: 0 } })
    const call: Call = { signal: AbortSignal.abort() }
    expect(hold(call).refusal).toEqual({ kind: 'refused', reason: 'aborted' })
    core.drain()
    expect(hold(call).refusal).toEqual({ kind: 'refused', reason: 'draining' })
    void core.stop()
    expect(hold(call).refusal).toEqual({ kind: 'refused', reason: 'stopped' })
  })

  it.each([
    ['maxQueuedCalls', { maxQueuedCalls: 0 }],
    ['maxQueuedBytes', { maxQueuedCalls: 5, maxQueuedBytes: 0 }],
    ['maxQueueDelayMs', { maxQueuedCalls: 5, maxQueueDelayMs: 0 }],
  ])('ADM-10 with %s 0 nothing queues and the reason is that of the scope, for one-way calls too', (_, queue) => {
    const { core, clock } = setup({ queue, global: { concurrency: 0 } })
    for (const oneWay of [false, true]) {
      expect(core.admit({ oneWay })).toEqual({ kind: 'refused', reason: 'concurrency', scope: 'global' })
    }
    expectQuiet({ core, clock })
  })

  it('ADM-10 a program that queues judges one_way, rate, queue_calls, queue_bytes in this order', async () => {
    const limits: ConfigInput = { global: { concurrency: 1 }, contracts: { '/orders': { rate: once } } }
    const rate = { kind: 'refused', reason: 'rate', scope: 'contract:/orders', retryAfterMs: 1000 }
    const queue = { maxQueuedCalls: 1, maxQueuedBytes: 10, maxQueueDelayMs: 1000, queueOneWayCalls: false }
    const { core, clock, hold } = setup({ ...limits, queue })
    const call: Call = { ...order, oneWay: true, bytes: 11 }
    const [running, waiting] = [hold(order), hold({ bytes: 10 })]
    expect(core.admit(call)).toEqual({ kind: 'refused', reason: 'one_way', scope: 'global' })
    await core.update({ ...limits, queue: { ...queue, queueOneWayCalls: true } })
    expect(core.admit(call)).toEqual(rate)
    await core.update({ ...limits, queue: { ...queue, queueOneWayCalls: true, maxQueueDelayMs: 1001 } })
    expect(core.admit(call)).toEqual({ kind: 'refused', reason: 'queue_calls', scope: 'global' })
    await core.update({
      ...limits,
      queue: { ...queue, queueOneWayCalls: true, maxQueueDelayMs: 1001, maxQueuedCalls: 2 },
    })
    expect(core.admit(call)).toEqual({ kind: 'refused', reason: 'queue_bytes', scope: 'global' })
    waiting.abort()
    running.release()
    expectQuiet({ core, clock })
  })

  it('ADM-3 a call that can wait waits, whatever it lacks', () => {
    for (let index = 0; index < gates.length; index += 1) {
      const queue = { maxQueuedCalls: 1, maxQueueDelayMs: 2000 }
      const { core, clock, hold } = setup({ ...threeScopes(...merge(index)), queue }, { selectors })
      const first = hold(order)
      const second = hold(order)
      expect(second.waiting).toBe(true)
      second.abort()
      first.release()
      expectQuiet({ core, clock })
    }
  })
})

describe('admit while disabled', () => {
  it('ADM-11 takes no permit and is not counted in active by itself', () => {
    const { core, clock, hold } = setup()
    const calls = Array.from({ length: 3 }, () => hold(order))
    expect(calls.map((call) => call.lease.generation)).toEqual([0, 0, 0])
    expect(core.snapshot()).toMatchObject({ state: 'disabled', config: null, active: 0, totals: { admitted: 3 } })
    for (const call of calls) call.release()
    expectQuiet({ core, clock })
  })

  it('ADM-11 its generation is the last one published', async () => {
    const { core, hold } = setup({})
    await core.update({})
    core.disable()
    expect([core.generation, core.config, hold().lease.generation]).toEqual([2, null, 2])
    expect(core.snapshot()).toMatchObject({ generation: 2, config: null, generations: [] })
  })

  it('ADM-11 a tracked call counts in active until it is released once', () => {
    const { core, clock } = setup()
    const [first, second] = [core.track(), core.track()]
    expect(core.snapshot().active).toBe(2)
    first.release()
    first.release()
    expect(core.snapshot().active).toBe(1)
    second.release()
    expectQuiet({ core, clock })
  })

  it('ADM-9 an aborted call is refused while disabled, too', () => {
    const { core } = setup()
    expect(reasonOf(core, { signal: AbortSignal.abort() })).toBe('aborted')
  })

  it('ADM-11 a call that began while disabled holds nothing of a configuration that is enabled later', () => {
    const { core, clock, hold } = setup()
    const before = hold()
    core.enable({ global: { concurrency: 1 } })
    const after = hold()
    expect(after.started).toBe(true)
    before.release()
    expect(scopeOf(core, 'global').active).toBe(1)
    expect(holdCall(core, {}).refusal?.reason).toBe('concurrency')
    after.release()
    expectQuiet({ core, clock })
  })
})
