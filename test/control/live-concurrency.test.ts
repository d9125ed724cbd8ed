import { describe, expect, it } from 'vitest'
import type { Call } from '../../src/call.ts'
import type { ConfigInput } from '../../src/config/types.ts'
import { expectQuiet, type Held, lineup, scopeOf, setup } from '../support/core.ts'

const queue = { maxQueuedCalls: 100, maxQueueDelayMs: 1000 }
const call: Call = { contract: '/a', method: 'get' }

/** The same matrix for each scope: a configuration in which only that scope has a limit, or none has. */
const scopes: readonly (readonly [name: string, config: (concurrency: number | undefined) => ConfigInput])[] = [
  ['global', (concurrency) => ({ queue, global: limit(concurrency) })],
  ['contract:/a', (concurrency) => ({ queue, contracts: { '/a': limit(concurrency) } })],
  ['method:/a get', (concurrency) => ({ queue, contracts: { '/a': { methods: { get: limit(concurrency) } } } })],
]
function limit(concurrency: number | undefined): { concurrency?: number } {
  return concurrency === undefined ? {} : { concurrency }
}
const releaseAll = (calls: readonly Held[]): void => {
  for (const each of calls) each.release()
}

describe.each(scopes)('concurrency of %s', (name, config) => {
  it('CON-1 grows 1 to 3 with one active: two more start at once', async () => {
    const { core, clock, hold } = setup(config(1))
    const first = hold(call)
    await core.update(config(3))
    const more = [hold(call), hold(call)]
    expect(more.map((each) => each.immediate)).toEqual([true, true])
    const beyond = hold(call)
    expect([beyond.waiting, scopeOf(core, name)]).toEqual([true, { limit: 3, active: 3, waiting: 1 }])
    beyond.abort()
    releaseAll([first, ...more])
    expectQuiet({ core, clock })
  })

  it('CON-1 waiters start first, in order, in the step of the update itself', async () => {
    const { core, clock, flush } = setup(config(1))
    const { call: add, started } = lineup(core)
    const calls = ['a', 'b', 'c', 'd'].map((each) => add(each, call))
    void core.update(config(3))
    expect(scopeOf(core, name)).toEqual({ limit: 3, active: 3, waiting: 1 })
    const newcomer = add('newcomer', call)
    await flush()
    expect(started).toEqual(['a', 'b', 'c'])
    for (const each of [...calls, newcomer]) {
      each.release()
      await flush()
    }
    expect(started).toEqual(['a', 'b', 'c', 'd', 'newcomer'])
    expectQuiet({ core, clock })
  })

  it('CON-2 shrinks 3 to 1 with three active: all go on, and nothing starts until fewer than one is active', async () => {
    const { core, clock, hold, flush } = setup(config(3))
    const calls = [hold(call), hold(call), hold(call)]
    await core.update(config(1))
    const waiting = hold(call)
    expect(scopeOf(core, name)).toEqual({ limit: 1, active: 3, waiting: 1 })
    for (const active of [2, 1]) {
      calls[active]?.release()
      await flush()
      expect([waiting.started, scopeOf(core, name).active]).toEqual([false, active])
    }
    calls[0]?.release()
    await flush()
    expect(waiting.lease.generation).toBe(2)
    waiting.release()
    expectQuiet({ core, clock })
  })

  it('CON-3 a shrink cancels no waiter; it waits under its captured deadline', async () => {
    const { core, clock, hold, flush } = setup(config(2))
    const calls = [hold(call), hold(call)]
    const [served, expiring] = [hold(call), hold(call)]
    clock.advance(100)
    await core.update(config(1))
    calls[0]?.release()
    await flush()
    expect(served.waiting).toBe(true)
    clock.advance(800)
    calls[1]?.release()
    await flush()
    expect([served.started, expiring.waiting]).toEqual([true, true])
    clock.advance(99)
    await flush()
    expect(expiring.waiting).toBe(true)
    clock.advance(1)
    await flush()
    expect(expiring.refusal?.reason).toBe('queue_timeout')
    served.release()
    expectQuiet({ core, clock })
  })

  it('CON-5 an added limit counts from then on: who runs already is not counted', async () => {
    const { core, clock, hold, flush } = setup(config(undefined))
    const before = [hold(call), hold(call), hold(call)]
    await core.update(config(1))
    expect(scopeOf(core, name)).toEqual({ limit: 1, active: 0, waiting: 0 })
    const [after, waiting] = [hold(call), hold(call)]
    expect([after.started, waiting.waiting]).toEqual([true, true])
    releaseAll(before)
    expect(scopeOf(core, name)).toEqual({ limit: 1, active: 1, waiting: 1 })
    after.release()
    await flush()
    waiting.release()
    expectQuiet({ core, clock })
  })

  it('CON-5 a removed limit is ignored by newer calls, and its old holders go on', async () => {
    const { core, clock, hold } = setup(config(1))
    const holder = hold(call)
    await core.update(config(undefined))
    const newer = Array.from({ length: 5 }, () => hold(call))
    expect(newer.every((each) => each.immediate)).toBe(true)
    expect(scopeOf(core, name)).toEqual({ limit: 1, active: 1, waiting: 0 })
    holder.release()
    releaseAll(newer)
    expect(core.snapshot().scopes).toEqual([])
    expectQuiet({ core, clock })
  })

  it('STA-5 after a removal a waiter of the old generation is measured against the last limit', async () => {
    const { core, clock, hold, flush } = setup(config(1))
    const holder = hold(call)
    const [waiting, second] = [hold(call), hold(call)]
    await core.update(config(undefined))
    await flush()
    expect(scopeOf(core, name)).toEqual({ limit: 1, active: 1, waiting: 2 })
    holder.release()
    await flush()
    expect([waiting.started, second.started, waiting.lease.generation]).toEqual([true, false, 1])
    waiting.release()
    await flush()
    second.release()
    expect(core.snapshot().scopes).toEqual([])
    expectQuiet({ core, clock })
  })

  it('STA-5 a waiter of an older generation is measured against the live limit', async () => {
    const { core, clock, hold, flush } = setup(config(1))
    const holder = hold(call)
    const waiting = [hold(call), hold(call), hold(call)]
    await core.update(config(2))
    await core.update(config(4))
    await flush()
    expect(waiting.map((each) => each.lease.generation)).toEqual([1, 1, 1])
    releaseAll([holder, ...waiting])
    expectQuiet({ core, clock })
  })

  it('STA-3 a limit that comes back while held is the same state with the same active count', async () => {
    const { core, clock, hold, flush } = setup(config(2))
    const holders = [hold(call), hold(call)]
    await core.update(config(undefined))
    holders[0]?.release()
    const between = hold(call) // not counted: its program does not name the scope
    await core.update(config(2))
    expect(scopeOf(core, name)).toEqual({ limit: 2, active: 1, waiting: 0 })
    const [newer, waiting] = [hold(call), hold(call)]
    expect([newer.started, waiting.waiting]).toEqual([true, true])
    between.release()
    await flush()
    expect(waiting.waiting).toBe(true)
    holders[1]?.release()
    await flush()
    expect(waiting.started).toBe(true)
    releaseAll([newer, waiting])
    expectQuiet({ core, clock })
  })

  it('STA-3 it comes back for a waiter, too, and starts it when the new limit has room', async () => {
    const { core, clock, hold, flush } = setup(config(1))
    const holder = hold(call)
    const waiting = hold(call)
    await core.update(config(undefined))
    await core.update(config(2))
    await flush()
    expect([waiting.lease.generation, scopeOf(core, name)]).toEqual([1, { limit: 2, active: 2, waiting: 0 }])
    releaseAll([holder, waiting])
    expectQuiet({ core, clock })
  })

  it('STA-3 it comes back after disable and enable with its holders and waiters', async () => {
    const { core, clock, hold, flush } = setup(config(1))
    const holder = hold(call)
    const waiting = hold(call)
    core.disable()
    const free = hold(call)
    expect(free.started).toBe(true)
    core.enable(config(1))
    expect(scopeOf(core, name)).toEqual({ limit: 1, active: 1, waiting: 1 })
    const newer = hold(call)
    holder.release()
    await flush()
    expect([waiting.started, newer.started]).toEqual([true, false]) // the older generation is the older waiter
    waiting.release()
    await flush()
    newer.release()
    expectQuiet({ core, clock })
  })

  it('STA-3 after the last holder is gone it starts anew', async () => {
    const { core, clock, hold } = setup(config(3))
    const holder = hold(call)
    await core.update(config(undefined))
    holder.release()
    await core.update(config(3))
    expect(scopeOf(core, name)).toEqual({ limit: 3, active: 0, waiting: 0 })
    expectQuiet({ core, clock })
  })

  it('CON-2 a limit of 0 pauses the scope: calls queue, and go on when it is raised', async () => {
    const { core, clock, hold, flush } = setup(config(1))
    const running = hold(call)
    await core.update(config(0))
    const waiting = hold(call)
    running.release()
    await flush()
    expect(waiting.waiting).toBe(true)
    await core.update(config(1))
    await flush()
    expect(waiting.started).toBe(true)
    waiting.release()
    expectQuiet({ core, clock })
  })

  it('CON-4 a walk of resizes never admits above the limit of the moment', async () => {
    const { core, clock, hold, flush } = setup(config(1))
    const running: Held[] = []
    for (const concurrency of [4, 2, 7, 0, 1, 3, undefined, 2, 5, 1]) {
      const before = core.snapshot().scopes[0]?.active ?? 0
      await core.update(config(concurrency))
      await flush()
      for (let newer = 0; newer < 3; newer += 1) running.push(hold(call))
      const scope = core.snapshot().scopes[0]
      if (concurrency !== undefined && scope !== undefined) {
        expect(scope.active).toBeLessThanOrEqual(Math.max(concurrency, before))
      }
      running.find((each) => each.started)?.release()
      await flush()
    }
    clock.advance(5000)
    for (const each of running) {
      await flush()
      if (each.started) each.release()
    }
    expectQuiet({ core, clock })
  })
})

describe('all three scopes together', () => {
  const three = (global: number, contract: number, method: number): ConfigInput => ({
    queue,
    global: { concurrency: global },
    contracts: { '/a': { concurrency: contract, methods: { get: { concurrency: method } } } },
  })
  const counts = (core: Parameters<typeof scopeOf>[0]): number[] => scopes.map(([name]) => scopeOf(core, name).active)

  it('CON-1 growing one scope starts nobody while another lacks room; growing the last one does', async () => {
    const { core, clock, hold, flush } = setup(three(1, 1, 1))
    const running = hold(call)
    const waiting = hold(call)
    for (const [global, contract, method] of [
      [2, 1, 1],
      [2, 2, 1],
    ] as const) {
      await core.update(three(global, contract, method))
      await flush()
      expect([waiting.waiting, ...counts(core)]).toEqual([true, 1, 1, 1])
    }
    await core.update(three(2, 2, 2))
    await flush()
    expect([waiting.started, ...counts(core)]).toEqual([true, 2, 2, 2])
    releaseAll([running, waiting])
    expectQuiet({ core, clock })
  })

  it('CON-2 shrinking and growing different scopes in one update leaves no permit behind', async () => {
    const { core, clock, hold, flush } = setup(three(4, 3, 2))
    const running = [hold(call), hold(call), hold({ contract: '/a' }), hold()]
    expect(counts(core)).toEqual([4, 3, 2])
    const waiting = hold(call)
    await core.update(three(9, 1, 5))
    await flush()
    expect([waiting.waiting, ...counts(core)]).toEqual([true, 4, 3, 2])
    await core.update(three(5, 4, 3))
    await flush()
    expect([waiting.started, ...counts(core)]).toEqual([true, 5, 4, 3])
    releaseAll([...running, waiting])
    expect(counts(core)).toEqual([0, 0, 0])
    expectQuiet({ core, clock })
  })

  it('STA-5 one scope removed, one resized, one added: an old waiter takes what its own program names', async () => {
    const { core, clock, hold, flush } = setup({
      queue,
      global: { concurrency: 1 },
      contracts: { '/a': { concurrency: 5 } },
    })
    const running = hold(call)
    const waiting = hold(call)
    await core.update({
      queue,
      global: { concurrency: 2 },
      contracts: { '/a': { methods: { get: { concurrency: 1 } } } },
    })
    await flush()
    expect(waiting.started).toBe(true)
    expect(scopes.map(([name]) => scopeOf(core, name).active)).toEqual([2, 2, 0])
    running.release()
    const newer = hold(call)
    expect([newer.lease.generation, scopeOf(core, 'method:/a get').active]).toEqual([2, 1])
    releaseAll([waiting, newer])
    expect(core.snapshot().scopes.map((each) => each.scope)).toEqual(['global', 'method:/a get'])
    expectQuiet({ core, clock })
  })
})
