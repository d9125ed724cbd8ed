import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Clock, MAX_TIMER_MS, nextTurn, SystemClock, Timeline } from '../src/clock.ts'
import { ManualClock } from '../src/manual-clock.ts'

/** The host's clock and timers, by hand: a timer fires when the test says so, early if it likes. */
function stubHost(): { nowMs: number; readonly delays: number[]; fire(): void; readonly armed: number } {
  const timers = new Map<number, () => void>()
  const host = {
    nowMs: 0,
    delays: [] as number[],
    get armed() {
      return timers.size
    },
    fire(): void {
      for (const [id, fn] of [...timers]) {
        timers.delete(id)
        fn()
      }
    },
  }
  vi.stubGlobal('performance', { now: () => host.nowMs })
  vi.stubGlobal('setTimeout', (fn: () => void, delayMs: number) => {
    timers.set(host.delays.length, fn)
    return host.delays.push(delayMs) - 1
  })
  vi.stubGlobal('clearTimeout', (id: number) => timers.delete(id))
  return host
}

afterEach(() => {
  vi.unstubAllGlobals()
})

describe('SystemClock', () => {
  it('RUN-1 reads nothing and starts nothing when it is made', () => {
    const now = vi.fn(() => 0)
    vi.stubGlobal('performance', { now })
    const start = vi.fn()
    vi.stubGlobal('setTimeout', start)
    new SystemClock()
    expect(now).not.toHaveBeenCalled()
    expect(start).not.toHaveBeenCalled()
  })

  it('reads the monotonic clock of the host', () => {
    const host = stubHost()
    host.nowMs = 1234.5
    expect(new SystemClock().nowMs()).toBe(1234.5)
  })

  it('calls once at the instant, never synchronously, also for an instant in the past', () => {
    const host = stubHost()
    const [clock, fn] = [new SystemClock(), vi.fn()]
    host.nowMs = 100
    clock.callAt(40, fn)
    expect(fn).not.toHaveBeenCalled()
    expect(host.delays).toEqual([0])
    host.fire()
    host.fire()
    expect(fn).toHaveBeenCalledTimes(1)
  })

  it('RUN-4 clamps a delay that is longer than timers keep, and goes on waiting after it', () => {
    const host = stubHost()
    const [clock, fn] = [new SystemClock(), vi.fn()]
    clock.callAt(MAX_TIMER_MS + 5, fn)
    expect(host.delays).toEqual([MAX_TIMER_MS])
    host.nowMs = MAX_TIMER_MS
    host.fire()
    expect(fn).not.toHaveBeenCalled()
    expect(host.delays).toEqual([MAX_TIMER_MS, 5])
    host.nowMs += 5
    host.fire()
    expect(fn).toHaveBeenCalledTimes(1)
  })

  it('RUN-4 re-arms a timer that fires a fraction early', () => {
    const host = stubHost()
    const [clock, fn] = [new SystemClock(), vi.fn()]
    clock.callAt(50, fn)
    host.nowMs = 49.9
    host.fire()
    expect(fn).not.toHaveBeenCalled()
    expect(host.delays).toEqual([50, 1])
    host.nowMs = 50
    host.fire()
    expect(fn).toHaveBeenCalledTimes(1)
  })

  it('cancels also after a timer was re-armed; again and too late is harmless', () => {
    const host = stubHost()
    const [clock, fn] = [new SystemClock(), vi.fn()]
    const cancel = clock.callAt(50, fn)
    host.nowMs = 49
    host.fire()
    cancel()
    cancel()
    expect(host.armed).toBe(0)
    const late = clock.callAt(0, fn)
    host.fire()
    late()
    expect(fn).toHaveBeenCalledTimes(1)
  })
})

describe('Timeline', () => {
  it('counts in whole milliseconds, rounded down', () => {
    const clock = new ManualClock()
    const timeline = new Timeline(clock)
    clock.set(12.999)
    expect(timeline.nowMs()).toBe(12)
  })

  it('RAT-4 takes the highest value seen for now when the clock goes backwards', () => {
    const clock = new ManualClock()
    const timeline = new Timeline(clock)
    const seen = [5, 3, -100, 5, 6, 0].map((nowMs) => {
      clock.set(nowMs)
      return timeline.nowMs()
    })
    expect(seen).toEqual([5, 5, 5, 5, 6, 6])
  })

  it('reads the clock once for each answer and never by itself', () => {
    const clock = new ManualClock()
    const timeline = new Timeline(clock)
    expect(clock.reads).toBe(0)
    timeline.nowMs()
    timeline.nowMs()
    expect(clock.reads).toBe(2)
  })

  it('accepts a clock whose origin is not zero, also a negative one', () => {
    const clock: Clock = { nowMs: () => -7.5, callAt: () => () => undefined }
    expect(new Timeline(clock).nowMs()).toBe(-8)
  })
})

describe('nextTurn', () => {
  it('is a timer of no delay and a message, lets any number of microtasks go first, and leaves no port open', async () => {
    const close = vi.spyOn(MessagePort.prototype, 'close')
    const host = stubHost()
    let isOver = false
    const turn = nextTurn().then(() => {
      isOver = true
    })
    for (let microtask = 0; microtask < 1000; microtask += 1) await Promise.resolve()
    expect(host.delays).toEqual([0])
    host.fire()
    for (let microtask = 0; microtask < 1000; microtask += 1) await Promise.resolve()
    expect(isOver).toBe(false)
    await turn
    expect(close).toHaveBeenCalledTimes(1)
    close.mockRestore()
  })

  it('is a timer where a host has no messages', async () => {
    const host = stubHost()
    vi.stubGlobal('MessageChannel', undefined)
    const turn = nextTurn()
    host.fire()
    await turn
  })

  it('lets the event loop turn, also between several who work for longer than a timer takes', async () => {
    const steps = 10
    let turns = 0
    let isOver = false
    const count = (): void => {
      turns += 1
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    const work = async (): Promise<void> => {
      for (let step = 0; step < steps; step += 1) {
        const turn = nextTurn()
        for (const endMs = performance.now() + 2; performance.now() < endMs; );
        await turn
      }
    }
    await Promise.all([work(), work(), work()])
    isOver = true
    expect(turns).toBeGreaterThanOrEqual(steps)
  })
})
