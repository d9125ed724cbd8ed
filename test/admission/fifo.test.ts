import { describe, expect, it } from 'vitest'
import type { ConfigInput } from '../../src/config/types.ts'
import { expectQuiet, lineup, scopeOf, setup } from '../support/core.ts'

const queue = { maxQueuedCalls: 100, maxQueueDelayMs: 1000 }
const inA = { contract: '/a' }
const inB = { contract: '/b' }

describe('arrival order', () => {
  it('ADM-4 waiters with the same scopes start in arrival order', async () => {
    const { core, clock, flush } = setup({ queue, global: { concurrency: 1 } })
    const { call, started } = lineup(core)
    const calls = ['a', 'b', 'c', 'd', 'e'].map((name) => call(name))
    for (const each of calls) {
      await flush()
      each.release()
    }
    expect(started).toEqual(['a', 'b', 'c', 'd', 'e'])
    expectQuiet({ core, clock })
  })

  it('ADM-4 several permits that come back at different times go to the oldest waiter each time', async () => {
    const { core, clock, flush } = setup({ queue, global: { concurrency: 3 } })
    const { call, started } = lineup(core)
    const calls = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => call(name))
    for (const index of [1, 0, 2, 3, 5, 4]) {
      calls[index]?.release()
      await flush()
    }
    expect(started).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
    expectQuiet({ core, clock })
  })

  it('ADM-4 a new arrival never takes the permit that a waiter has just been given', async () => {
    const { core, clock, flush } = setup({ queue, global: { concurrency: 1 } })
    const { call, started } = lineup(core)
    const [first, waiting] = [call('first'), call('waiting')]
    first.release()
    const newcomer = call('newcomer') // in the same turn, before anybody has seen the grant
    expect([newcomer.immediate, scopeOf(core, 'global').active]).toEqual([false, 1])
    await flush()
    expect(started).toEqual(['first', 'waiting'])
    waiting.release()
    await flush()
    newcomer.release()
    expectQuiet({ core, clock })
  })

  it('ADM-4 order holds between routes that share what is lacking', async () => {
    const { core, clock, flush } = setup({
      queue,
      global: { concurrency: 1 },
      contracts: { '/a': { concurrency: 5 }, '/b': { concurrency: 5 } },
    })
    const { call, started } = lineup(core)
    const routes = { a1: inA, b1: inB, other1: {}, a2: inA, b2: inB, other2: {} }
    const calls = Object.entries(routes).map(([name, route]) => call(name, route))
    for (const each of calls) {
      await flush()
      each.release()
    }
    expect(started).toEqual(['a1', 'b1', 'other1', 'a2', 'b2', 'other2'])
    expectQuiet({ core, clock })
  })

  it('ADM-4 a newer call passes an older waiter when what that one lacks is not on its scopes', () => {
    const { core, clock, hold } = setup({ queue, global: { concurrency: 9 }, contracts: { '/a': { concurrency: 1 } } })
    const [running, waiting] = [hold(inA), hold(inA)]
    const [other, unnamed] = [hold(inB), hold()]
    expect([waiting.waiting, other.immediate, unnamed.immediate]).toEqual([true, true, true])
    waiting.abort()
    for (const each of [running, other, unnamed]) each.release()
    expectQuiet({ core, clock })
  })

  it('ADM-4 a queued newer call passes too, and the older one keeps its place among its own', async () => {
    const { core, clock, flush } = setup({ queue, global: { concurrency: 2 }, contracts: { '/a': { concurrency: 1 } } })
    const { call, started } = lineup(core)
    const [a1, b1] = [call('a1', inA), call('b1', inB)]
    const [a2, b2, a3] = [call('a2', inA), call('b2', inB), call('a3', inA)]
    b1.release()
    await flush()
    expect(started).toEqual(['a1', 'b1', 'b2']) // a2 lacks /a, b2 does not
    a1.release()
    await flush()
    expect(started).toEqual(['a1', 'b1', 'b2', 'a2'])
    a2.release()
    await flush()
    expect(started).toEqual(['a1', 'b1', 'b2', 'a2', 'a3'])
    b2.release()
    a3.release()
    expectQuiet({ core, clock })
  })

  it('ADM-4 a waiter that lacks two scopes is considered when the last of them gets room, whichever that is', async () => {
    const config: ConfigInput = { queue, global: { concurrency: 2 }, contracts: { '/a': { concurrency: 1 } } }
    for (const lastOne of ['global', 'contract']) {
      const { core, clock, hold, flush } = setup(config)
      const [inContract, elsewhere] = [hold(inA), hold()]
      const waiting = hold(inA)
      const [first, last] = lastOne === 'contract' ? [elsewhere, inContract] : [inContract, elsewhere]
      if (lastOne === 'global') {
        const next = hold() // takes the place of the first, so that only /a has room
        first.release()
        await flush()
        expect([next.started, waiting.started]).toEqual([false, true]) // the older one could start, so it did
        waiting.release()
        await flush()
        next.release()
      } else {
        first.release()
        await flush()
        expect(waiting.started).toBe(false)
      }
      last.release()
      await flush()
      if (lastOne === 'contract') waiting.release()
      expectQuiet({ core, clock })
    }
  })

  it('ADM-4 partitions are scopes too: another key passes, the same key waits in order', async () => {
    const { core, clock, flush } = setup(
      { queue, global: { concurrency: 9, partitions: { tenant: { concurrency: 1 } } } },
      { selectors: { tenant: () => 'unused' } },
    )
    const { call, started } = lineup(core)
    const of = (tenant: string): { keys: { tenant: string } } => ({ keys: { tenant } })
    const [x1, x2, y1, x3] = [call('x1', of('x')), call('x2', of('x')), call('y1', of('y')), call('x3', of('x'))]
    expect(started).toEqual(['x1', 'y1'])
    x1.release()
    await flush()
    x2.release()
    await flush()
    expect(started).toEqual(['x1', 'y1', 'x2', 'x3'])
    x3.release()
    y1.release()
    expectQuiet({ core, clock })
  })
})

describe('work conservation', () => {
  it('ADM-5 a release starts the waiter before it returns', () => {
    const { core, hold, clock } = setup({ queue, global: { concurrency: 1 } })
    const running = hold()
    hold()
    running.release()
    expect(core.snapshot()).toMatchObject({ active: 1, queued: { calls: 0 } })
    expect(clock.pending).toBe(0)
  })

  it('ADM-5 a resize starts every waiter that now fits, in the same step', async () => {
    const { core, hold } = setup({ queue, global: { concurrency: 1 } })
    for (let index = 0; index < 6; index += 1) hold()
    const update = core.update({ queue, global: { concurrency: 4 } })
    expect(core.snapshot()).toMatchObject({ active: 4, queued: { calls: 2 } })
    await update
  })

  it('ADM-5 a refill starts the waiters it has permits for, at its instant', async () => {
    const rate = { algorithm: 'fixed-window', permitLimit: 2, windowMs: 100 } as const
    const { core, clock, flush } = setup({ queue, global: { rate } })
    const { call, started } = lineup(core)
    const calls = ['a', 'b', 'c', 'd', 'e'].map((name) => call(name))
    clock.advance(99)
    await flush()
    expect(started).toEqual(['a', 'b'])
    clock.advance(1)
    await flush()
    expect(started).toEqual(['a', 'b', 'c', 'd'])
    clock.advance(100)
    await flush()
    for (const each of calls) each.release()
    expectQuiet({ core, clock })
  })

  it('ADM-5 when what held everybody up leaves the middle of the queue, those behind it start at once', async () => {
    // The departing waiter is the one a permit is kept for: its going makes that permit free.
    const { core, clock, hold, flush } = setup({
      queue,
      contracts: { '/a': { concurrency: 2, methods: { slow: { concurrency: 1 } } } },
    })
    const slow = { contract: '/a', method: 'slow' }
    const blocker = hold(slow)
    let fast = hold(inA)
    const waiting = hold(slow)
    for (let pass = 0; pass < 64; pass += 1) {
      fast.release()
      fast = hold(inA)
    }
    fast.release()
    const behind = hold(inA)
    expect(behind.waiting).toBe(true)
    waiting.abort()
    await flush()
    expect(behind.started).toBe(true)
    blocker.release()
    behind.release()
    expectQuiet({ core, clock })
  })

  it('ADM-5 a waiter that leaves from the middle does not disturb those before and behind it', async () => {
    const { core, clock, flush } = setup({ queue, global: { concurrency: 1 } })
    const { call, started } = lineup(core)
    const aborter = new AbortController()
    const first = call('first')
    const second = call('second')
    const middle = call('middle', { signal: aborter.signal })
    const last = call('last')
    aborter.abort()
    for (const each of [first, second, last]) {
      each.release()
      await flush()
    }
    expect(middle.refusal?.reason).toBe('aborted')
    expect(started).toEqual(['first', 'second', 'last'])
    expectQuiet({ core, clock })
  })

  it('ADM-5 a queue behind a closed scope does not hold up calls that do not need it', () => {
    const { core, clock, hold } = setup({ queue, contracts: { '/a': { concurrency: 0 }, '/b': { concurrency: 1 } } })
    const paused = [hold(inA), hold(inA)]
    const [running, next] = [hold(inB), hold(inB)]
    running.release()
    expect(scopeOf(core, 'contract:/b').active).toBe(1)
    expect(core.snapshot().queued.calls).toBe(2)
    for (const each of [...paused, next]) each.abort()
    core.disable()
    expect(scopeOf(core, 'contract:/b').active).toBe(1)
    expect(clock.pending).toBe(0)
  })
})
