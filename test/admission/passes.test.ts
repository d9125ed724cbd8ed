import { describe, expect, it } from 'vitest'
import type { ConfigInput } from '../../src/config/types.ts'
import { expectQuiet, type Held, reasonOf, type Setup, scopeOf, setup } from '../support/core.ts'

const slow = { contract: '/a', method: 'slow' }
const fast = { contract: '/a', method: 'fast' }
const limits = (concurrency: number, slowLimit = 1): Pick<ConfigInput, 'contracts'> => ({
  contracts: { '/a': { concurrency, methods: { slow: { concurrency: slowLimit } } } },
})
const queue = { maxQueuedCalls: 100, maxQueueDelayMs: 60_000 }

/** One slow call holds the only slow permit, one fast call the rest of /a; `waiters` slow calls lack both. */
function crowded(
  waiters = 1,
): Setup & { blocker: Held; waiting: Held[]; pass(times: number): void; fastLease(): Held } {
  const made = setup({ queue, ...limits(2) })
  const { hold } = made
  const blocker = hold(slow)
  let running = hold(fast)
  const waiting = Array.from({ length: waiters }, () => hold(slow))
  const pass = (times: number): void => {
    for (let count = 0; count < times; count += 1) {
      running.release()
      running = hold(fast)
      expect(running.immediate).toBe(true)
    }
  }
  return { ...made, blocker, waiting, pass, fastLease: () => running }
}

describe('the pass bound', () => {
  it('ADM-6 after 63 passes nothing is kept: the next newer call still takes the room', () => {
    const { core, clock, blocker, waiting, pass, fastLease } = crowded()
    pass(63)
    pass(1) // this is the 64th
    waiting[0]?.abort()
    fastLease().release()
    blocker.release()
    expectQuiet({ core, clock })
  })

  it('ADM-6 after 64 passes one permit is kept, and a call held up by it waits', async () => {
    const { core, clock, hold, flush, blocker, waiting, pass, fastLease } = crowded()
    pass(64)
    fastLease().release()
    const heldUp = hold(fast)
    expect(heldUp.waiting).toBe(true)
    expect(scopeOf(core, 'contract:/a')).toEqual({ limit: 2, active: 1, waiting: 2 })
    blocker.release()
    await flush()
    expect([waiting[0]?.started, heldUp.started]).toEqual([true, true])
    waiting[0]?.release()
    heldUp.release()
    expectQuiet({ core, clock })
  })

  it('ADM-6 a call held up that cannot queue is refused with the reason of the scope held back', async () => {
    const { core, clock, blocker, waiting, pass, fastLease } = crowded()
    pass(64)
    fastLease().release()
    expect(core.admit({ ...fast, oneWay: true })).toEqual({ kind: 'refused', reason: 'one_way', scope: 'contract:/a' })
    await core.update(limits(2))
    expect(core.admit(fast)).toEqual({ kind: 'refused', reason: 'concurrency', scope: 'contract:/a' })
    waiting[0]?.abort()
    expect(reasonOf(core, fast)).toBeUndefined()
    blocker.release()
    expectQuiet({ core, clock })
  })

  it('ADM-6 a pass does not count while the scope always had room: the waiter never lacked it', () => {
    const { core, clock, hold } = setup({ queue, ...limits(3) })
    const [blocker, waiting] = [hold(slow), hold(slow)]
    for (let count = 0; count < 500; count += 1) {
      const each = hold(fast)
      expect(each.immediate).toBe(true)
      each.release()
    }
    waiting.abort()
    blocker.release()
    expectQuiet({ core, clock })
  })

  it('ADM-6 a call that shares no scope with the waiter passes it without end', () => {
    const { core, clock, hold, blocker, waiting, fastLease } = crowded()
    for (let count = 0; count < 500; count += 1) {
      const each = hold({ contract: '/b' })
      expect(each.immediate).toBe(true)
      each.release()
    }
    fastLease().release()
    expect(reasonOf(core, fast)).toBeUndefined()
    waiting[0]?.abort()
    blocker.release()
    expectQuiet({ core, clock })
  })

  it('ADM-6 passes by waiters that are granted count like passes by newcomers', async () => {
    const { core, clock, hold, flush, blocker, waiting, fastLease } = crowded()
    let running = fastLease()
    for (let count = 0; count < 64; count += 1) {
      const next = hold(fast)
      expect(next.waiting).toBe(true)
      running.release()
      await flush()
      expect(next.started).toBe(true)
      running = next
    }
    const next = hold(fast)
    running.release()
    await flush()
    expect(next.waiting).toBe(true)
    blocker.release()
    await flush()
    expect([waiting[0]?.started, next.started]).toEqual([true, true])
    waiting[0]?.release()
    next.release()
    expectQuiet({ core, clock })
  })

  it('ADM-6 only one permit is kept: with more room in the scope newer calls still pass', async () => {
    const { core, clock, hold, flush, blocker, waiting, pass, fastLease } = crowded()
    pass(64)
    await core.update({ queue, ...limits(4) })
    const others = [hold(fast), hold(fast)]
    expect(others.map((call) => call.started)).toEqual([true, false])
    waiting[0]?.abort()
    await flush()
    expect(others[1]?.started).toBe(true)
    for (const each of [blocker, fastLease(), ...others]) each.release()
    expectQuiet({ core, clock })
  })

  it.each(['times out', 'aborts'])('ADM-6 what was kept is free again when the waiter %s', async (how) => {
    const { core, clock, hold, flush, blocker, waiting, pass, fastLease } = crowded()
    clock.advance(1)
    const aborter = new AbortController()
    pass(64)
    fastLease().release()
    const heldUp = hold({ ...fast, signal: aborter.signal })
    expect(heldUp.waiting).toBe(true)
    if (how === 'aborts') waiting[0]?.abort()
    else clock.advance(59_999)
    await flush()
    expect(heldUp.started).toBe(true)
    heldUp.release()
    blocker.release()
    expectQuiet({ core, clock })
  })

  it('ADM-6 the permit is kept for the oldest of several that were passed too often', async () => {
    const { core, clock, hold, flush, blocker, waiting, pass, fastLease } = crowded(2)
    pass(64)
    fastLease().release()
    const heldUp = hold(fast)
    blocker.release()
    await flush()
    expect(waiting.map((call) => call.started)).toEqual([true, false])
    waiting[0]?.release()
    await flush()
    expect(waiting[1]?.started).toBe(true)
    waiting[1]?.release()
    heldUp.release()
    expectQuiet({ core, clock })
  })

  it('ADM-6 a waiter behind another of the same route is passed as often, and is the next that a permit is kept for', async () => {
    const { core, clock, hold, flush, blocker, waiting, pass, fastLease } = crowded(2)
    pass(64) // both lacked /a, and both lacked their method each time
    waiting[0]?.abort()
    fastLease().release()
    const heldUp = hold(fast)
    expect(heldUp.waiting).toBe(true)
    blocker.release()
    await flush()
    expect([waiting[1]?.started, heldUp.started]).toEqual([true, true])
    waiting[1]?.release()
    heldUp.release()
    expectQuiet({ core, clock })
  })

  it('ADM-6 passes go on counting for the others while a permit is kept for the oldest', async () => {
    const { core, clock, hold, flush, blocker, waiting, pass, fastLease } = crowded(2)
    pass(32)
    const third = hold(slow)
    pass(32) // the first two have 64, the third has 32
    await core.update({ queue, ...limits(3) })
    let other = hold(fast)
    expect(other.started).toBe(false) // two of three are taken and one is kept
    fastLease().release()
    await flush()
    expect(other.started).toBe(true)
    for (let count = 0; count < 31; count += 1) {
      const next = hold(fast)
      other.release()
      await flush()
      other = next
    }
    waiting[0]?.abort()
    waiting[1]?.abort()
    await flush()
    const next = hold(fast)
    other.release()
    await flush()
    expect([other.started, next.started, third.waiting]).toEqual([true, true, true])
    const heldUp = [hold(fast), hold(fast)]
    expect(heldUp.map((call) => call.started)).toEqual([false, false])
    third.abort()
    await flush()
    expect(heldUp.map((call) => call.started)).toEqual([true, false])
    next.release()
    await flush()
    for (const each of [...heldUp, blocker]) each.release()
    expectQuiet({ core, clock })
  })

  it('ADM-6 a waiter that came after the passes has not been passed', async () => {
    const { core, clock, hold, blocker, waiting, pass, fastLease } = crowded()
    pass(63)
    const late = hold(slow)
    waiting[0]?.abort()
    fastLease().release()
    for (let count = 0; count < 63; count += 1) expect(reasonOf(core, fast)).toBeUndefined()
    late.abort()
    blocker.release()
    expectQuiet({ core, clock })
  })

  it('ADM-6 a rate permit is kept as well as a concurrency permit', async () => {
    const rate = { algorithm: 'fixed-window', permitLimit: 1, windowMs: 10 } as const
    const { core, clock, hold, flush } = setup({
      queue,
      contracts: { '/a': { rate, methods: { slow: { concurrency: 1 } } } },
    })
    const blocker = hold(slow)
    const waiting = hold(slow)
    for (let count = 0; count < 64; count += 1) {
      clock.advance(10)
      const each = hold(fast)
      expect(each.immediate).toBe(true)
      each.release()
    }
    clock.advance(10)
    const heldUp = hold(fast)
    expect(heldUp.waiting).toBe(true)
    blocker.release()
    await flush()
    expect([waiting.started, heldUp.started]).toEqual([true, false])
    clock.advance(10)
    await flush()
    expect(heldUp.started).toBe(true)
    waiting.release()
    heldUp.release()
    expectQuiet({ core, clock })
  })
})
