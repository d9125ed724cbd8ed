import { describe, expect, it } from 'vitest'
import type { ConfigInput } from '../../src/config/types.ts'
import { AdmissionConflictError, AdmissionStateError } from '../../src/errors.ts'
import { barrier, errorOf, expectQuiet, scopeOf, setup } from '../support/core.ts'

const queue = { maxQueuedCalls: 10, maxQueueDelayMs: 1000 }
const limit = (concurrency: number): ConfigInput => ({ queue, global: { concurrency } })
const limitOf = (core: Parameters<typeof scopeOf>[0]): number => scopeOf(core, 'global').limit

describe('states and writers', () => {
  it('PUB-1 each writer works in its own state only', async () => {
    const { core } = setup()
    await expect(core.update({})).rejects.toThrow(AdmissionStateError)
    expect(() => core.disable()).toThrow(AdmissionStateError)
    expect([core.state, core.generation]).toEqual(['disabled', 0])
    expect(core.enable(limit(1))).toMatchObject({ generation: 1, plan: { added: [{ to: 1 }] } })
    expect(() => core.enable(limit(2))).toThrow(AdmissionStateError)
    expect([limitOf(core), core.state]).toEqual([1, 'enabled'])
    core.disable()
    expect(() => core.disable()).toThrow(AdmissionStateError)
  })

  it('PUB-1 after stop every writer fails, and plan still answers', async () => {
    for (const config of [undefined, limit(1)]) {
      const { core } = setup(config)
      await core.stop()
      await expect(core.update({})).rejects.toThrow(AdmissionStateError)
      for (const write of [() => core.enable({}), () => core.disable(), () => core.drain(), () => core.resume()]) {
        expect(write).toThrow(AdmissionStateError)
      }
      expect(core.state).toBe('stopped')
      expect(core.plan({}).refusals).toEqual([])
    }
  })

  it('PUB-1 a state error names the action and the state', async () => {
    const { core } = setup()
    expect(await errorOf(core.update({}))).toMatchObject({ action: 'update', state: 'disabled' })
    await core.stop()
    expect(await errorOf(core.update({}))).toMatchObject({ action: 'update', state: 'stopped' })
  })

  it('PUB-2 a candidate replaces the whole configuration; what it omits is gone', async () => {
    const { core, clock, hold } = setup({ queue, global: { concurrency: 1 }, contracts: { '/a': { concurrency: 1 } } })
    await core.update({ contracts: { '/b': { concurrency: 4 } } })
    expect(core.config).toEqual({ contracts: { '/b': { concurrency: 4 } } })
    expect(core.snapshot().scopes.map((scope) => scope.scope)).toEqual(['contract:/b'])
    hold({ contract: '/a' }).release()
    expectQuiet({ core, clock })
  })

  it('PUB-3 the builder gets the current configuration with its defaults, and its own error passes through', async () => {
    const { core } = setup(limit(3))
    const before = core.snapshot()
    const failure = { not: 'an Error' }
    expect(
      await errorOf(
        core.update((current) => {
          expect(current).toEqual(core.config)
          expect(current.queue).toMatchObject({ maxQueuedBytes: 16_777_216, queueOneWayCalls: false })
          throw failure
        }),
      ),
    ).toBe(failure)
    expect(await errorOf(core.update(() => Promise.reject(failure)))).toBe(failure)
    const gate = barrier<ConfigInput>()
    const update = errorOf(core.update(() => gate.promise))
    gate.reject(failure)
    expect(await update).toBe(failure)
    expect(core.snapshot()).toEqual(before)
    await core.update((current) => ({ ...current, global: { concurrency: 4 } }))
    expect([core.generation, limitOf(core)]).toEqual([2, 4])
  })

  it('PUB-3 the builder runs outside the commit: calls go on, and other writers too', async () => {
    const { core, clock, hold } = setup(limit(1))
    const gate = barrier<ConfigInput>()
    const update = core.update(() => gate.promise)
    const running = hold()
    expect([running.started, hold({ oneWay: true }).refusal?.reason]).toEqual([true, 'one_way'])
    gate.resolve(limit(2))
    expect(await update).toMatchObject({ generation: 2 })
    running.release()
    expectQuiet({ core, clock })
  })

  it('PUB-6 a new program is seen by the next call only; a call keeps the one it captured', async () => {
    const { core, clock, hold } = setup(limit(5))
    const before = hold()
    await core.update(limit(6))
    const after = hold()
    expect([before.lease.generation, after.lease.generation]).toEqual([1, 2])
    before.release()
    after.release()
    expectQuiet({ core, clock })
  })

  it('PUB-10 the generation only grows, also across disable and enable, and failures use none up', async () => {
    const { core } = setup(limit(1))
    const seen = [core.generation]
    await core.update(limit(2)).then(({ generation }) => seen.push(generation))
    await errorOf(core.update(limit(-1)))
    await errorOf(core.update(limit(3), { expectedGeneration: 1 }))
    core.disable()
    seen.push(core.generation, core.enable(limit(1)).generation)
    await core.update(limit(2)).then(({ generation }) => seen.push(generation))
    expect(seen).toEqual([1, 2, 2, 3, 4])
  })

  it('PUB-4 expectedGeneration is the source that is checked, at the call and at the commit', async () => {
    const { core } = setup(limit(1))
    expect(await errorOf(core.update(limit(9), { expectedGeneration: 7 }))).toMatchObject({ expected: 7, actual: 1 })
    expect(await errorOf(core.update(() => expect.unreachable(), { expectedGeneration: 0 }))).toBeInstanceOf(
      AdmissionConflictError,
    )
    const gate = barrier<ConfigInput>()
    const update = errorOf(core.update(() => gate.promise, { expectedGeneration: 1 }))
    await core.update(limit(2), { expectedGeneration: 1 })
    gate.resolve(limit(3))
    expect(await update).toMatchObject({ expected: 1, actual: 2 })
    expect(limitOf(core)).toBe(2)
  })
})

describe('races of writers', () => {
  it('PUB-5 N has limit 10; A prepares 5; B wins with 20; A fails: the live limit is 20, also for who holds and waits', async () => {
    const { core, clock, hold, flush } = setup(limit(10))
    const running = Array.from({ length: 10 }, () => hold())
    const waiting = hold()
    const gate = barrier<ConfigInput>()
    const losing = errorOf(core.update(() => gate.promise))
    expect(limitOf(core)).toBe(10)
    await core.update(limit(20))
    await flush()
    expect(waiting.started).toBe(true)
    const before = core.snapshot()
    gate.resolve(limit(5))
    const error = await losing
    expect(error).toBeInstanceOf(AdmissionConflictError)
    expect(error).toMatchObject({ expected: 1, actual: 2 })
    expect(core.snapshot()).toEqual(before)
    expect(limitOf(core)).toBe(20)
    for (const each of [...running, waiting]) each.release()
    expectQuiet({ core, clock })
  })

  it('PUB-4 of several updates from one source exactly one wins, whichever commits first, and none is rebased', async () => {
    for (const winner of [0, 1, 2]) {
      const { core } = setup(limit(1))
      const gates = [barrier<ConfigInput>(), barrier<ConfigInput>(), barrier<ConfigInput>()]
      const updates = gates.map((gate) => core.update(() => gate.promise))
      const outcomes = Promise.allSettled(updates)
      gates[winner]?.resolve(limit(10 + winner))
      await updates[winner]
      gates.forEach((gate, index) => {
        gate.resolve(limit(10 + index))
      })
      expect((await outcomes).map(({ status }) => status)).toEqual(
        [0, 1, 2].map((index) => (index === winner ? 'fulfilled' : 'rejected')),
      )
      expect([core.generation, limitOf(core)]).toEqual([2, 10 + winner])
    }
  })

  it('PUB-5 what a losing candidate names leaves no scope, rate or partition behind', async () => {
    const { core } = setup(limit(1), { selectors: { tenant: () => 'acme' } })
    const gate = barrier<ConfigInput>()
    const losing = errorOf(core.update(() => gate.promise))
    await core.update(limit(2))
    const before = core.snapshot()
    gate.resolve({ ...limit(9), contracts: { '/a': { concurrency: 3, methods: { m: { concurrency: 0 } } }, '/b': {} } })
    await losing
    expect(core.snapshot()).toEqual(before)
    await core.update({ ...limit(2), contracts: { '/a': { concurrency: 7 } } })
    expect(scopeOf(core, 'contract:/a')).toEqual({ limit: 7, active: 0, waiting: 0 })
  })

  it('PUB-12 an update that meets disabled fails with a state error and changes nothing', async () => {
    const { core, clock, hold } = setup(limit(1))
    const running = hold()
    const gate = barrier<ConfigInput>()
    const losing = errorOf(core.update(() => gate.promise))
    core.disable()
    const before = core.snapshot()
    gate.resolve(limit(5))
    const error = await losing
    expect(error).toBeInstanceOf(AdmissionStateError)
    expect(error).toMatchObject({ action: 'update', state: 'disabled' })
    expect(core.snapshot()).toEqual(before)
    running.release()
    expectQuiet({ core, clock })
  })

  it('PUB-12 an update across a disabled time conflicts with the generation that is enabled now', async () => {
    const { core } = setup(limit(1))
    const gate = barrier<ConfigInput>()
    const losing = errorOf(core.update(() => gate.promise))
    core.disable()
    core.enable(limit(1)) // the same configuration, yet another generation
    gate.resolve(limit(5))
    const error = await losing
    expect(error).toBeInstanceOf(AdmissionConflictError)
    expect(error).toMatchObject({ expected: 1, actual: 2 })
    expect(limitOf(core)).toBe(1)
  })

  it('PUB-8 an update that is stopped after it was prepared fails with a state error', async () => {
    const { core, clock, hold } = setup(limit(1))
    const running = hold()
    const gate = barrier<ConfigInput>()
    const losing = errorOf(core.update(() => gate.promise))
    const stopped = core.stop()
    gate.resolve(limit(5))
    const error = await losing
    expect(error).toBeInstanceOf(AdmissionStateError)
    expect(error).toMatchObject({ state: 'stopped' })
    expect([limitOf(core), core.generation]).toEqual([1, 1])
    running.release()
    expect(await stopped).toEqual({ drained: true, active: 0, queued: 0 })
    expectQuiet({ core, clock })
  })

  it('PUB-8 a drain meanwhile neither stops an update nor is ended by it', async () => {
    const { core } = setup(limit(1))
    const gate = barrier<ConfigInput>()
    const update = core.update(() => gate.promise)
    core.drain()
    gate.resolve(limit(5))
    expect(await update).toMatchObject({ generation: 2 })
    expect([core.draining, limitOf(core)]).toEqual([true, 5])
  })

  it('PUB-8 a builder that itself publishes, disables or stops is told that its candidate lost', async () => {
    for (const [meanwhile, kind] of [
      ['update', AdmissionConflictError],
      ['disable', AdmissionStateError],
      ['stop', AdmissionStateError],
    ] as const) {
      const { core } = setup(limit(1))
      const error = await errorOf(
        core.update(async () => {
          if (meanwhile === 'update') await core.update(limit(2))
          else if (meanwhile === 'disable') core.disable()
          else void core.stop()
          return limit(9)
        }),
      )
      expect(error).toBeInstanceOf(kind)
      expect(core.generation).toBe(meanwhile === 'update' ? 2 : 1)
    }
  })

  it('PUB-3 an update without a builder commits before it returns', async () => {
    const { core } = setup(limit(1))
    const [first, second] = [core.update(limit(2)), core.update(limit(3))]
    expect([core.generation, limitOf(core)]).toEqual([3, 3]) // one after the other, each from the one before
    expect([await first, await second]).toMatchObject([{ generation: 2 }, { generation: 3 }])
  })

  it('PUB-8 every order of update, disable and enable ends in a sequential outcome', async () => {
    const actions = ['update', 'disable', 'enable', 'stop'] as const
    for (const first of actions) {
      for (const second of actions) {
        const { core, clock } = setup(limit(1))
        const gate = barrier<ConfigInput>()
        const prepared = core
          .update(() => gate.promise)
          .then(
            () => 'won',
            () => 'lost',
          )
        let isStopped = false
        let published = 1
        for (const action of [first, second]) {
          try {
            if (action === 'update') await core.update(limit(7))
            else if (action === 'disable') core.disable()
            else if (action === 'enable') core.enable(limit(3))
            else void core.stop()
            if (action === 'update' || action === 'enable') published += 1
            if (action === 'stop') isStopped = true
          } catch (error) {
            expect(error).toBeInstanceOf(AdmissionStateError)
          }
        }
        const { state, generation } = core
        gate.resolve(limit(9))
        const untouched = state === 'enabled' && generation === 1
        expect(await prepared).toBe(untouched ? 'won' : 'lost')
        expect(core.generation).toBe(untouched ? 2 : published)
        expect(core.state).toBe(isStopped ? 'stopped' : state)
        expectQuiet({ core, clock })
      }
    }
  })
})

describe('reclaiming', () => {
  it('PUB-7 a retired program is shown while its last call runs or waits, and is gone after that', async () => {
    const { core, clock, hold, flush } = setup(limit(1))
    const [running, waiting] = [hold(), hold()]
    await core.update(limit(1))
    expect(core.snapshot().generations).toEqual([
      { generation: 2, active: 0, queued: 0 },
      { generation: 1, active: 1, queued: 1 },
    ])
    running.release()
    await flush()
    expect(core.snapshot().generations[1]).toEqual({ generation: 1, active: 1, queued: 0 })
    waiting.release()
    expect(core.snapshot().generations).toEqual([{ generation: 2, active: 0, queued: 0 }])
    expectQuiet({ core, clock })
  })

  it.each(['aborts', 'expires'])('PUB-7 it is gone, too, when its last waiter %s', async (how) => {
    const { core, clock, hold } = setup(limit(0))
    const waiting = hold()
    await core.update(limit(0))
    expect(core.snapshot().generations).toHaveLength(2)
    if (how === 'aborts') waiting.abort()
    else clock.advance(1000)
    expect(core.snapshot().generations).toHaveLength(1)
    expectQuiet({ core, clock })
  })

  it('PUB-7 a thousand generations with one call each are all live, and all go', async () => {
    const { core, clock, hold } = setup(limit(2000))
    const calls = []
    for (let update = 0; update < 1000; update += 1) {
      calls.push(hold())
      await core.update(limit(2000 + update))
    }
    expect(core.snapshot().generations).toHaveLength(1001)
    for (const call of calls) call.release()
    expectQuiet({ core, clock })
  })

  it('PUB-7 ten thousand updates, winning, losing, invalid and refused, leave everything as it was', async () => {
    const base: ConfigInput = { ...limit(3), contracts: { '/a': { concurrency: 2 } } }
    const { core, clock, hold } = setup(base)
    const before = core.snapshot()
    for (let update = 0; update < 2500; update += 1) {
      const gate = barrier<ConfigInput>()
      const losing = core.update(() => gate.promise).catch(() => undefined)
      const running = hold({ contract: '/a' })
      await core.update({ queue: { maxQueuedCalls: update }, contracts: { [`/${update}`]: { concurrency: update } } })
      gate.resolve({ contracts: { [`/lost ${update}`]: { concurrency: 1 } } })
      await losing
      await errorOf(core.update({ global: { rate: { algorithm: 'fixed-window', permitLimit: 1, windowMs: 1 } } }))
      await errorOf(core.update({ global: { concurrency: -1 } }))
      running.release()
      await core.update(base)
    }
    const after = core.snapshot()
    expect(after).toEqual({
      ...before,
      generation: 5001,
      generations: [{ generation: 5001, active: 0, queued: 0 }],
      totals: after.totals,
    })
    expect(clock.timersStarted).toBe(0)
    expectQuiet({ core, clock })
  })

  it('PUB-7 a hundred thousand updates leave everything as it was', { timeout: 60_000 }, async () => {
    const { core, clock } = setup(limit(3))
    const before = core.snapshot()
    for (let update = 0; update < 100_000; update += 1) void core.update(limit((update % 9) + 1))
    await core.update(limit(3))
    expect(core.snapshot()).toEqual({
      ...before,
      generation: 100_002,
      generations: [{ generation: 100_002, active: 0, queued: 0 }],
    })
    expectQuiet({ core, clock })
  })
})
