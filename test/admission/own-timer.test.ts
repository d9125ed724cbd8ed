import { describe, expect, it } from 'vitest'
import { expectQuiet, setup } from '../support/core.ts'

const own = { ownTimers: true }

describe('waiters with timers of their own', () => {
  it('RUN-3 every waiter has exactly one pending timer, and clears only that one when it wakes', async () => {
    const { core, clock, hold, flush } = setup({ global: { concurrency: 1 }, queue: { maxQueuedCalls: 9 } }, own)
    const running = hold()
    const [first, second] = [hold(), hold()]
    expect(clock.pending).toBe(2)
    running.release()
    await flush()
    expect(first.started).toBe(true)
    expect(clock.pending).toBe(1)
    first.release()
    await flush()
    second.release()
    expectQuiet({ core, clock })
  })

  it('QUE-9 a waiter expires on its own timer', async () => {
    const { core, clock, hold, flush } = setup({ global: { concurrency: 1 }, queue: { maxQueuedCalls: 9 } }, own)
    const running = hold()
    const waiting = hold()
    clock.advance(999)
    await flush()
    expect(waiting.waiting).toBe(true)
    clock.advance(1)
    await flush()
    expect(waiting.refusal?.reason).toBe('queue_timeout')
    running.release()
    expectQuiet({ core, clock })
  })

  it('RAT-3 a waiter on a rate starts when the rate has room', async () => {
    const rate = { algorithm: 'token-bucket', tokenLimit: 1, tokensPerPeriod: 1, replenishmentPeriodMs: 300 } as const
    const { core, clock, hold, flush } = setup({ global: { rate }, queue: { maxQueuedCalls: 9 } }, own)
    hold().release()
    const [first, second] = [hold(), hold()]
    clock.advance(300)
    await flush()
    expect([first.started, second.started]).toEqual([true, false])
    clock.advance(299)
    await flush()
    expect(second.started).toBe(false)
    clock.advance(51)
    await flush()
    expect(second.started).toBe(true)
    first.release()
    second.release()
    expectQuiet({ core, clock })
  })

  it('QUE-11 a large grow goes on with whatever happens next, should its own timer be lost', async () => {
    const queue = { maxQueuedCalls: 1000 }
    const { core, clock, hold, flush } = setup({ global: { concurrency: 1 }, queue }, own)
    const running = hold()
    const waiting = Array.from({ length: 600 }, () => hold())
    await core.update({ global: { concurrency: 1000 }, queue })
    expect(core.snapshot().queued.calls).toBeLessThanOrEqual(600 - 256)
    running.release()
    hold().release()
    await flush()
    expect(waiting.every((held) => held.started)).toBe(true)
    for (const held of waiting) held.release()
    clock.advance(0)
    await flush()
    expectQuiet({ core, clock })
  })
})

describe('waiters that nobody can wake', () => {
  const looking = { ownTimers: 'look' } as const
  const queue = { maxQueuedCalls: 9 }

  it('RUN-7 a waiter has its permit at once, and starts when it looks', async () => {
    const { core, clock, hold, flush } = setup({ global: { concurrency: 1 }, queue }, looking)
    const running = hold()
    const [first, second] = [hold(), hold()]
    expect(clock.pending).toBe(2)
    running.release()
    await flush()
    expect(first.started).toBe(false)
    expect(core.snapshot()).toMatchObject({ active: 1, queued: { calls: 1 } })
    clock.advance(5)
    await flush()
    expect([first.started, second.started]).toEqual([true, false])
    first.release()
    clock.advance(50)
    await flush()
    expect(second.started).toBe(true)
    second.release()
    expectQuiet({ core, clock })
  })

  it('QUE-9 a waiter expires at its deadline, not at a look after it', async () => {
    const { core, clock, hold, flush } = setup({ global: { concurrency: 1 }, queue }, looking)
    const running = hold()
    const waiting = hold()
    for (let ms = 1; ms < 1000; ms += 1) {
      clock.advance(1)
      await flush()
    }
    expect(waiting.waiting).toBe(true)
    clock.advance(1)
    await flush()
    expect(waiting.refusal?.reason).toBe('queue_timeout')
    running.release()
    expectQuiet({ core, clock })
  })

  it('RAT-3 a waiter on a rate starts at a look after the rate has room', async () => {
    const rate = { algorithm: 'token-bucket', tokenLimit: 1, tokensPerPeriod: 1, replenishmentPeriodMs: 300 } as const
    const { core, clock, hold, flush } = setup({ global: { rate }, queue }, looking)
    hold().release()
    const waiting = hold()
    for (let ms = 0; ms < 299; ms += 1) {
      clock.advance(1)
      await flush()
    }
    expect(waiting.started).toBe(false)
    clock.advance(31)
    await flush()
    expect(waiting.started).toBe(true)
    waiting.release()
    expectQuiet({ core, clock })
  })
})
