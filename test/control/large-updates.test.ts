import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { ConfigInput } from '../../src/config/types.ts'
import { AdmissionConfigError, AdmissionConflictError, AdmissionStateError } from '../../src/errors.ts'
import { errorOf, expectQuiet, scopeOf, setup } from '../support/core.ts'

/** Large enough that each part of an update pauses: reading, comparing, binding. */
const CONTRACTS = 9000
const queue = { maxQueuedCalls: 10, maxQueueDelayMs: 1000 }

const large = (limit: number, more: NonNullable<ConfigInput['contracts']> = {}): ConfigInput => ({
  queue,
  global: { concurrency: limit },
  contracts: {
    ...more,
    ...Object.fromEntries(
      Array.from({ length: CONTRACTS }, (_, index) => [`/area-${index}`, { concurrency: limit, holdUntil: 'handler' }]),
    ),
  },
})

/** Turns of the event loop that somebody waits for. They come when the test says so. */
const turns: (() => void)[] = []

beforeEach(() => {
  turns.length = 0
  vi.stubGlobal('setTimeout', (fn: () => void) => turns.push(fn))
  vi.stubGlobal('MessageChannel', undefined)
})

afterEach(() => {
  vi.unstubAllGlobals()
})

async function flush(): Promise<void> {
  for (let microtask = 0; microtask < 10; microtask += 1) await Promise.resolve()
}

/** Ends a pause. */
async function turn(): Promise<void> {
  turns.shift()?.()
  await flush()
}

/** Goes through all pauses of an update, and says how many there were; `during` is called in each. */
async function pauses(
  update: Promise<unknown>,
  during: (pause: number) => void | Promise<void> = () => {},
): Promise<number> {
  let isOver = false
  const end = (): void => {
    isOver = true
  }
  update.then(end, end)
  await flush()
  let count = 0
  for (; !isOver; count += 1) {
    await during(count)
    await turn()
  }
  expect(turns).toEqual([])
  return count
}

/** How many pauses an update has, so that something can happen in each of them. */
async function pausesOf(candidate: ConfigInput): Promise<number> {
  const { core } = setup({ queue })
  return await pauses(core.update(candidate))
}

describe('a large update', () => {
  it('PUB-3 pauses while it is prepared, and calls go on under the current program', async () => {
    const { core, clock, hold } = setup({ queue, global: { concurrency: 1 } })
    const update = core.update(large(2))
    const count = await pauses(update, () => {
      expect(core.generation).toBe(1)
      const running = hold({ contract: '/area-0' })
      expect(running.lease.generation).toBe(1)
      running.release()
    })
    expect(count).toBeGreaterThanOrEqual(8)
    expect((await update).generation).toBe(2)
    expect(hold().lease).toMatchObject({ generation: 2 })
    expect(core.snapshot().active).toBe(1)
    expect(clock.pending).toBe(0)
  })

  it('PUB-3 a small one does not pause: it is published when the call returns', async () => {
    const { core } = setup({ queue })
    const update = core.update({ global: { concurrency: 1 } })
    expect([core.generation, turns.length]).toEqual([2, 0])
    await update
  })

  it('PUB-4 PUB-5 loses to whatever is published in any of its pauses, and leaves no trace', async () => {
    const count = await pausesOf(large(5))
    for (let pause = 0; pause < count; pause += 1) {
      const { core, clock } = setup({ queue, global: { concurrency: 10 } })
      const late = errorOf(core.update(large(5)))
      await pauses(late, async (at) => {
        if (at === pause) await core.update({ queue, global: { concurrency: 20 } })
      })
      expect(await late, `pause ${pause}`).toBeInstanceOf(AdmissionConflictError)
      expect(core.snapshot().scopes.map(({ scope, limit }) => [scope, limit])).toEqual([['global', 20]])
      expectQuiet({ core, clock })
    }
  })

  it('PUB-4 of two that are prepared at the same time one wins', async () => {
    const { core } = setup({ queue, global: { concurrency: 10 } })
    const outcomes = Promise.allSettled([core.update(large(5)), core.update(large(7))])
    await pauses(outcomes)
    const [first, second] = await outcomes
    expect([first?.status, second?.status]).toEqual(['fulfilled', 'rejected'])
    expect([core.generation, scopeOf(core, 'global').limit]).toEqual([2, 5])
  })

  it('PUB-8 PUB-12 fails when admission is disabled or stopped meanwhile, also if it is enabled again', async () => {
    const meanwhile: [string, (core: ReturnType<typeof setup>['core']) => unknown, new (...args: never) => Error][] = [
      ['disabled', (core) => core.disable(), AdmissionStateError],
      ['stopped', (core) => core.stop(), AdmissionStateError],
      ['enabled again', (core) => [core.disable(), core.enable({ queue })], AdmissionConflictError],
    ]
    for (const [what, act, failure] of meanwhile) {
      const { core } = setup({ queue, global: { concurrency: 10 } })
      const late = errorOf(core.update(large(5)))
      await turn()
      await act(core)
      const after = core.snapshot()
      await pauses(late)
      expect(await late, what).toBeInstanceOf(failure)
      expect(core.snapshot(), what).toEqual(after)
    }
  })

  it('CFG-1 PUB-5 an invalid one fails with every issue, from first to last, and changes nothing', async () => {
    const { core } = setup({ queue, global: { concurrency: 10 } })
    const before = core.snapshot()
    const contracts = { '/first': { concurrency: -1 }, ...large(5).contracts, '/last': { concurrency: 0.5 } }
    const late = errorOf(core.update({ queue, contracts }))
    expect(await pauses(late)).toBeGreaterThan(0)
    const error = await late
    expect(error).toBeInstanceOf(AdmissionConfigError)
    expect(error).toMatchObject({
      issues: [{ pointer: '/contracts/~1first/concurrency' }, { pointer: '/contracts/~1last/concurrency' }],
    })
    expect(core.snapshot()).toEqual(before)
  })

  it('STA-3 a scope that comes back has its holders, even when the last one leaves in a pause', async () => {
    const again = large(5, { '/kept': { concurrency: 1 } })
    const count = await pausesOf(again)
    for (let pause = 0; pause <= count; pause += 1) {
      const { core, clock, hold } = setup({ contracts: { '/kept': { concurrency: 1 } } })
      const running = hold({ contract: '/kept' })
      await core.update({ queue })
      const update = core.update(again)
      await pauses(update, (at) => {
        if (at === pause) running.release()
      })
      await update
      const isHeld = pause === count
      expect(scopeOf(core, 'contract:/kept')).toEqual({ limit: 1, active: isHeld ? 1 : 0, waiting: 0 })
      const next = hold({ contract: '/kept' })
      expect(next.started, `pause ${pause}`).toBe(!isHeld)
      if (isHeld) running.release()
      await flush()
      next.release()
      expectQuiet({ core, clock })
    }
  })

  it('CON-1 starts exactly the waiters that fit, those that came in its pauses too', async () => {
    const { core, clock, hold } = setup({ queue, global: { concurrency: 1 } })
    const calls = [hold(), hold()]
    const update = core.update(large(4))
    await pauses(update, (at) => {
      if (at % 3 === 0) calls.push(hold())
    })
    await update
    await flush()
    expect(calls.length).toBeGreaterThan(4)
    expect(calls.map(({ started }) => started)).toEqual(calls.map((_, index) => index < 4))
    for (const call of calls) {
      await flush()
      call.release()
    }
    expectQuiet({ core, clock })
  })

  it('CFG-4 what is changed after it was published changes nothing', async () => {
    const { core } = setup({ queue })
    const candidate = structuredClone(large(5))
    const update = core.update(candidate)
    await pauses(update)
    await update
    Object.assign(candidate.contracts?.['/area-0'] ?? {}, { concurrency: 1 })
    expect(core.config?.contracts?.['/area-0']).toEqual({ concurrency: 5, holdUntil: 'handler' })
    expect(scopeOf(core, 'contract:/area-0').limit).toBe(5)
  })
})
