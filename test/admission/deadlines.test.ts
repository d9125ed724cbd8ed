import { describe, expect, it } from 'vitest'
import { AdmissionCore } from '../../src/admission-core.ts'
import type { Clock } from '../../src/clock.ts'
import type { ConfigInput } from '../../src/config/types.ts'
import { ManualClock } from '../../src/manual-clock.ts'
import { expectQuiet, type Held, holdCall, setup } from '../support/core.ts'

const single = (maxQueueDelayMs: number, concurrency = 1): ConfigInput => ({
  queue: { maxQueuedCalls: 5000, maxQueueDelayMs },
  global: { concurrency },
})
const reasons = (calls: readonly Held[]): (string | undefined)[] => calls.map((call) => call.refusal?.reason)

describe('deadlines', () => {
  it('QUE-9 a waiter expires on time although nothing else ever happens', async () => {
    const { core, clock, hold, flush } = setup(single(100, 0))
    const waiting = hold()
    clock.advance(99)
    await flush()
    expect(waiting.waiting).toBe(true)
    clock.advance(1)
    await flush()
    expect(waiting.refusal).toEqual({ kind: 'refused', reason: 'queue_timeout', scope: 'global' })
    expectQuiet({ core, clock })
  })

  it('QUE-9 every waiter has its own deadline, one delay after its arrival', async () => {
    const { core, clock, hold, flush } = setup(single(100, 0))
    const expiredAt = new Map<number, number>()
    const calls: Held[] = []
    for (const atMs of [0, 10, 10, 35, 90]) {
      clock.advance(atMs - clock.nowMs())
      calls.push(hold())
    }
    for (let atMs = clock.nowMs(); atMs <= 200; atMs += 1) {
      await flush()
      calls.forEach((call, index) => {
        if (!call.waiting && !expiredAt.has(index)) expiredAt.set(index, clock.nowMs())
      })
      clock.advance(1)
    }
    expect([...expiredAt.values()]).toEqual([100, 110, 110, 135, 190])
    expectQuiet({ core, clock })
  })

  it('QUE-9 a thousand waiters of one instant cost one timer', () => {
    const { core, clock, hold } = setup(single(100, 0))
    for (let index = 0; index < 1000; index += 1) hold()
    expect([clock.timersStarted, clock.pending]).toEqual([1, 1])
    clock.advance(100)
    expect(core.snapshot().totals.refused.queue_timeout).toBe(1000)
    expect(clock.timersStarted).toBe(1)
    expectQuiet({ core, clock })
  })

  it('QUE-9 a thousand waiters that come one a millisecond have one timer at a time', () => {
    const { core, clock, hold } = setup(single(2000, 0))
    for (let index = 0; index < 1000; index += 1) {
      hold()
      clock.advance(1)
      expect(clock.pending).toBe(1)
    }
    expect(clock.timersStarted).toBe(1)
    clock.advance(2000)
    expect(core.snapshot().totals.refused.queue_timeout).toBe(1000)
    expect(clock.timersStarted).toBeLessThanOrEqual(1000)
    expectQuiet({ core, clock })
  })

  it('QUE-9 waiters that come and go start hardly any timers', async () => {
    const { core, clock, hold, flush } = setup(single(1000))
    let running = hold()
    const aside = hold() // somebody always waits
    for (let round = 0; round < 1000; round += 1) {
      const leaving = hold()
      leaving.abort()
    }
    expect(clock.timersStarted).toBe(1)
    running.release()
    await flush()
    running = aside
    running.release()
    expectQuiet({ core, clock })
  })

  it('QUE-9 no timer runs while nothing waits', async () => {
    const { core, clock, hold, flush } = setup(single(1000))
    const [running, waiting] = [hold(), hold()]
    running.release()
    await flush()
    expect(clock.pending).toBe(0)
    waiting.release()
    expectQuiet({ core, clock })
  })

  it('QUE-9 waiters of several generations, each with its delay, have one timer each at most', async () => {
    const { core, clock, hold, flush } = setup(single(500, 0))
    const calls = [hold()]
    for (const delayMs of [400, 300, 200, 600]) {
      await core.update(single(delayMs, 0))
      calls.push(hold())
    }
    expect(clock.pending).toBeLessThanOrEqual(5)
    const order: number[] = []
    for (let atMs = 100; atMs <= 600; atMs += 100) {
      clock.advance(100)
      await flush()
      order.push(calls.filter((call) => !call.waiting).length)
    }
    expect(order).toEqual([0, 1, 2, 3, 4, 5])
    expectQuiet({ core, clock })
  })

  it('QUE-3 a later update moves no deadline, longer or shorter', async () => {
    const { core, clock, hold, flush } = setup(single(100, 0))
    const first = hold()
    clock.advance(50)
    await core.update(single(1000, 0))
    const second = hold()
    await core.update(single(10, 0))
    const third = hold()
    clock.advance(10) // 60
    await flush()
    expect(reasons([first, second, third])).toEqual([undefined, undefined, 'queue_timeout'])
    clock.advance(40) // 100
    await flush()
    expect(reasons([first, second])).toEqual(['queue_timeout', undefined])
    clock.advance(949) // 1049
    await flush()
    expect(second.waiting).toBe(true)
    clock.advance(1)
    await flush()
    expect(second.refusal?.reason).toBe('queue_timeout')
    expectQuiet({ core, clock })
  })

  it('QUE-12 at its deadline a waiter expires before a release in that very turn is considered', async () => {
    const { core, clock, hold, flush } = setup(single(100))
    const [running, waiting] = [hold(), hold()]
    clock.set(100) // the timer is due and has not run
    running.release()
    await flush()
    expect(waiting.refusal?.reason).toBe('queue_timeout')
    clock.advance(0)
    expectQuiet({ core, clock })
  })

  it('QUE-12 a resize at the deadline does not start it either', async () => {
    const { core, clock, hold, flush } = setup(single(100, 0))
    const waiting = hold()
    clock.set(100)
    await core.update(single(100, 5))
    await flush()
    expect(waiting.refusal?.reason).toBe('queue_timeout')
    clock.advance(0)
    expectQuiet({ core, clock })
  })

  it('QUE-12 one millisecond before the deadline it starts', async () => {
    const { core, clock, hold, flush } = setup(single(100))
    const [running, waiting] = [hold(), hold()]
    clock.set(99)
    running.release()
    await flush()
    expect(waiting.lease.waitedMs).toBe(99)
    waiting.release()
    clock.advance(10)
    expectQuiet({ core, clock })
  })

  it('QUE-12 a refill at the deadline is too late', async () => {
    const { core, clock, hold, flush } = setup({
      queue: { maxQueuedCalls: 9, maxQueueDelayMs: 101 },
      global: { concurrency: 1, rate: { algorithm: 'fixed-window', permitLimit: 1, windowMs: 100 } },
    })
    const running = hold()
    const waiting = hold()
    expect(waiting.waiting).toBe(true)
    clock.advance(100)
    clock.set(101)
    running.release() // room everywhere, but the time is up
    await flush()
    expect(waiting.refusal?.reason).toBe('queue_timeout')
    clock.advance(0)
    expectQuiet({ core, clock })
  })

  it('QUE-10 a grant and a timeout in one turn have one outcome, whichever comes first', async () => {
    for (const first of ['grant', 'timeout']) {
      const { core, clock, hold, flush } = setup(single(100))
      const [running, waiting] = [hold(), hold()]
      clock.set(first === 'grant' ? 99 : 100)
      if (first === 'grant') running.release()
      clock.advance(first === 'grant' ? 1 : 0)
      if (first === 'timeout') running.release()
      await flush()
      const { totals, active } = core.snapshot()
      expect(totals.admitted + totals.refused.queue_timeout).toBe(2)
      expect([waiting.started, active]).toEqual(first === 'grant' ? [true, 1] : [false, 0])
      if (waiting.started) waiting.release()
      expectQuiet({ core, clock })
    }
  })

  it('QUE-10 the permit of an expired waiter goes to the next one that is still there', async () => {
    const { core, clock, hold, flush } = setup(single(100))
    const running = hold()
    const expiring = hold()
    clock.advance(50)
    const next = hold()
    clock.set(100)
    running.release()
    await flush()
    expect([expiring.refusal?.reason, next.started]).toEqual(['queue_timeout', true])
    next.release()
    clock.advance(0)
    expectQuiet({ core, clock })
  })

  it('QUE-9 expired waiters free their room before a new arrival is judged', async () => {
    const { core, clock, hold, flush } = setup({
      queue: { maxQueuedCalls: 1, maxQueuedBytes: 10, maxQueueDelayMs: 100 },
      global: { concurrency: 0 },
    })
    const expiring = hold({ bytes: 10 })
    clock.set(100) // nobody has noticed yet
    const newcomer = hold({ bytes: 10 })
    expect(newcomer.waiting).toBe(true)
    await flush()
    expect(expiring.refusal?.reason).toBe('queue_timeout')
    newcomer.abort()
    clock.advance(0)
    expectQuiet({ core, clock })
  })

  it('QUE-9 a clock that goes backwards neither expires early nor stalls for good', async () => {
    const { core, clock, hold, flush } = setup(single(100, 0))
    clock.advance(1000)
    const waiting = hold()
    clock.set(0)
    const later = hold()
    clock.advance(1099)
    await flush()
    expect([waiting.waiting, later.waiting]).toEqual([true, true])
    clock.advance(1)
    await flush()
    expect(reasons([waiting, later])).toEqual(['queue_timeout', 'queue_timeout'])
    expectQuiet({ core, clock })
  })

  it('RUN-4 a timer that fires early does not expire anybody early', async () => {
    const clock = new ManualClock()
    let isEarly = true
    const early: Clock = {
      nowMs: () => clock.nowMs(),
      callAt: (atMs, fn) => {
        const firesAtMs = isEarly ? atMs - 1 : atMs
        isEarly = false
        return clock.callAt(firesAtMs, fn)
      },
    }
    const core = new AdmissionCore({ clock: early, config: single(100, 0) })
    const waiting = holdCall(core, {})
    clock.advance(99)
    expect([clock.timersStarted, core.snapshot().queued.calls]).toEqual([2, 1])
    clock.advance(1)
    await Promise.resolve()
    expect(waiting.refusal?.reason).toBe('queue_timeout')
    expectQuiet({ core, clock })
  })

  it('API-4 the oldest wait is that of the oldest waiter over all generations, and 0 without one', async () => {
    const { core, clock, hold } = setup(single(1000, 0))
    expect(core.snapshot().queued.oldestWaitMs).toBe(0)
    clock.advance(5)
    const first = hold()
    clock.advance(20)
    await core.update(single(2000, 0))
    const second = hold()
    clock.advance(3)
    expect(core.snapshot().queued.oldestWaitMs).toBe(23)
    first.abort()
    expect(core.snapshot().queued.oldestWaitMs).toBe(3)
    second.abort()
    expectQuiet({ core, clock })
  })
})
