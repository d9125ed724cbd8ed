import { describe, expect, it } from 'vitest'
import type { ConfigInput } from '../../src/config/types.ts'
import { expectQuiet, setup } from '../support/core.ts'

const config = (maxOpenBodies: number, more: ConfigInput = {}): ConfigInput => ({
  ...more,
  contracts: {
    '/files': { concurrency: 4, delivery: { key: 'client', maxOpenBodies }, methods: { 'GET /files/:id': {} } },
  },
})
const options = { selectors: { client: () => undefined } }
const call = (client?: string) => ({ contract: '/files', method: 'GET /files/:id', keys: { client } })

describe('places under delivery', () => {
  it('REL-3 a key at maxOpenBodies is refused without touching another key', () => {
    const { core, clock, hold } = setup(config(1), options)
    const first = hold(call('a'))
    first.lease.releasePermits()
    expect(hold(call('a')).refusal).toEqual({ kind: 'refused', reason: 'delivery', scope: 'contract:/files' })
    const other = hold(call('b'))
    expect(other.started).toBe(true)
    expect(core.snapshot().deliveries).toEqual([
      {
        scope: 'contract:/files',
        contract: '/files',
        current: true,
        selector: 'client',
        keys: 2,
        openBodies: 2,
        maxOpenBodies: 1,
      },
    ])
    first.release()
    const again = hold(call('a'))
    expect(again.started).toBe(true)
    for (const held of [other, again]) held.release()
    expectQuiet({ core, clock })
  })

  it('REL-6 permits are free after releasePermits while the place is still taken, and each goes back once', () => {
    const { core, clock, hold } = setup(config(2), options)
    const held = hold(call('a'))
    held.lease.releasePermits()
    held.lease.releasePermits()
    expect(core.snapshot().active).toBe(0)
    expect(core.snapshot().deliveries[0]?.openBodies).toBe(1)
    held.release()
    held.release()
    held.lease.releasePermits()
    expect(core.snapshot().deliveries[0]?.openBodies).toBe(0)
    expectQuiet({ core, clock })
  })

  it('REL-6 a refusal for delivery never queues, and comes before every scope (ADM-10)', () => {
    const { core, clock, hold } = setup(
      config(1, { queue: { maxQueuedCalls: 5 }, global: { concurrency: 1 } }),
      options,
    )
    const held = hold(call('a'))
    expect(hold(call('a')).refusal?.reason).toBe('delivery')
    expect(core.snapshot().queued.calls).toBe(0)
    held.release()
    expectQuiet({ core, clock })
  })

  it('REL-6 a waiter takes its place together with the permits, never before', async () => {
    const { core, clock, hold, flush } = setup(
      config(1, { queue: { maxQueuedCalls: 5, maxQueueDelayMs: 100 }, global: { concurrency: 1 } }),
      options,
    )
    const busy = hold({})
    const [first, second] = [hold(call('a')), hold(call('a'))]
    expect(core.snapshot().deliveries[0]).toMatchObject({ keys: 1, openBodies: 0 })
    busy.release()
    await flush()
    expect([first.started, second.started]).toEqual([true, false])
    first.lease.releasePermits()
    await flush()
    expect(second.started).toBe(false) // a permit is free, but its key still has its one body open
    first.release()
    await flush()
    expect(second.started).toBe(true)
    second.release()
    expectQuiet({ core, clock })
  })

  it('PUB-9 maxOpenBodies changes at once, closes no body, and starts waiters that now fit', async () => {
    const { core, clock, hold, flush } = setup(
      config(1, { queue: { maxQueuedCalls: 5 }, global: { concurrency: 1 } }),
      options,
    )
    const busy = hold({})
    const [first, second] = [hold(call('a')), hold(call('a'))]
    busy.release()
    await flush()
    first.lease.releasePermits()
    expect(second.waiting).toBe(true)
    await core.update(config(2, { queue: { maxQueuedCalls: 5 }, global: { concurrency: 1 } }))
    await flush()
    expect(second.started).toBe(true)
    await core.update(config(1, { queue: { maxQueuedCalls: 5 }, global: { concurrency: 1 } }))
    expect(core.snapshot().deliveries[0]).toMatchObject({ openBodies: 2, maxOpenBodies: 1 })
    expect(hold(call('a')).refusal?.reason).toBe('delivery')
    first.release()
    second.release()
    expectQuiet({ core, clock })
    await core.update({})
    expect(core.snapshot().deliveries).toEqual([])
  })

  it('PAR-3 a call without a key is not bounded', () => {
    const { core, clock, hold } = setup(config(1), options)
    const [first, second] = [hold(call()), hold(call())]
    expect([first.started, second.started]).toEqual([true, true])
    first.release()
    second.release()
    expectQuiet({ core, clock })
  })
})
