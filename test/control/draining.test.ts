import { describe, expect, it } from 'vitest'
import type { ConfigInput } from '../../src/config/types.ts'
import type { StopReport } from '../../src/control/draining.ts'
import { AdmissionStateError } from '../../src/errors.ts'
import { expectQuiet, reasonOf, setup } from '../support/core.ts'

const single: ConfigInput = { queue: { maxQueuedCalls: 9, maxQueueDelayMs: 1000 }, global: { concurrency: 1 } }

/** Follows the report of a stop. */
function follow(stopped: Promise<StopReport>): { report: StopReport | undefined } {
  const followed: { report: StopReport | undefined } = { report: undefined }
  void stopped.then((report) => {
    followed.report = report
  })
  return followed
}

describe('drain', () => {
  it('DRN-1 refuses new calls while running and waiting ones finish', async () => {
    const { core, clock, hold, flush } = setup(single)
    const [running, waiting] = [hold(), hold()]
    core.drain()
    expect(core.admit()).toEqual({ kind: 'refused', reason: 'draining' })
    running.release()
    await flush()
    expect(waiting.started).toBe(true)
    waiting.release()
    expect([core.draining, core.ready]).toEqual([true, false])
    expectQuiet({ core, clock })
  })

  it('DRN-1 nothing but resume ends it: not update, disable, enable, nor a resize', async () => {
    const { core } = setup(single)
    core.drain()
    await core.update({ global: { concurrency: 5 } })
    expect(reasonOf(core)).toBe('draining')
    core.disable()
    expect(reasonOf(core)).toBe('draining')
    core.enable(single)
    expect([reasonOf(core), core.draining]).toEqual(['draining', true])
    core.resume()
    expect([reasonOf(core), core.draining, core.ready]).toEqual([undefined, false, true])
  })

  it('DRN-2 works while disabled, too, and is still on after enable', () => {
    const { core } = setup()
    core.drain()
    expect(core.snapshot()).toMatchObject({ state: 'disabled', draining: true, announcing: false })
    expect(reasonOf(core)).toBe('draining')
    core.enable(single)
    expect(reasonOf(core)).toBe('draining')
    core.resume()
    core.disable()
    expect(reasonOf(core)).toBeUndefined()
  })

  it('DRN-1 while announcing readiness is off and calls are still admitted; then it seals by itself', () => {
    const { core, clock } = setup(single)
    core.drain({ announceMs: 100 })
    expect(core.snapshot()).toMatchObject({ draining: true, announcing: true })
    expect([core.ready, reasonOf(core)]).toEqual([false, undefined])
    clock.advance(99)
    expect(reasonOf(core)).toBeUndefined()
    clock.advance(1)
    expect(core.snapshot()).toMatchObject({ draining: true, announcing: false })
    expect(reasonOf(core)).toBe('draining')
    expectQuiet({ core, clock })
  })

  it('DRN-7 drain during an announcement seals at once, and leaves no timer', () => {
    const { core, clock } = setup(single)
    core.drain({ announceMs: 100 })
    core.drain()
    expect(reasonOf(core)).toBe('draining')
    expectQuiet({ core, clock })
  })

  it('DRN-7 a second drain is a no-op: an announcement does not open what is sealed', () => {
    const { core, clock } = setup(single)
    core.drain()
    core.drain({ announceMs: 1000 })
    core.drain()
    expect(reasonOf(core)).toBe('draining')
    expectQuiet({ core, clock })
  })

  it('DRN-7 a longer announcement never delays, a shorter one counts', () => {
    const { core, clock } = setup(single)
    core.drain({ announceMs: 100 })
    core.drain({ announceMs: 500 })
    clock.advance(40)
    core.drain({ announceMs: 20 })
    clock.advance(19)
    expect(reasonOf(core)).toBeUndefined()
    clock.advance(1)
    expect(reasonOf(core)).toBe('draining')
    expectQuiet({ core, clock })
    core.resume()
    core.drain({ announceMs: 100 })
    core.drain({ announceMs: 500 })
    clock.advance(100)
    expect(reasonOf(core)).toBe('draining')
  })

  it('DRN-1 resume during an announcement takes it back for good', () => {
    const { core, clock } = setup(single)
    core.drain({ announceMs: 100 })
    core.resume()
    expect([clock.pending, core.ready]).toEqual([0, true])
    clock.advance(1000)
    expect(reasonOf(core)).toBeUndefined()
    core.resume() // nothing to resume is no error
    expectQuiet({ core, clock })
  })

  it.each([-1, Number.NaN])('DRN-1 refuses an announcement of %d ms and changes nothing', (announceMs) => {
    const { core } = setup(single)
    expect(() => core.drain({ announceMs })).toThrow(RangeError)
    expect([core.draining, core.ready]).toEqual([false, true])
  })

  it('PUB-8 update and disable work as ever while draining', async () => {
    const { core } = setup(single)
    core.drain()
    expect(await core.update({ global: { concurrency: 7 } })).toMatchObject({ generation: 2 })
    core.disable()
    expect(core.snapshot()).toMatchObject({ state: 'disabled', draining: true })
  })
})

describe('stop', () => {
  it('DRN-3 refuses new calls and waiters, lets running calls finish, and resolves when the last has', async () => {
    const { core, clock, hold, flush } = setup(single)
    const [running, ...waiting] = [hold(), hold({ bytes: 5 }), hold()]
    const stopped = follow(core.stop())
    await flush()
    expect(waiting.map((call) => call.refusal)).toEqual([
      { kind: 'refused', reason: 'stopped' },
      { kind: 'refused', reason: 'stopped' },
    ])
    expect(core.admit()).toEqual({ kind: 'refused', reason: 'stopped' })
    expect(core.snapshot()).toMatchObject({ state: 'stopped', active: 1, queued: { calls: 0, bytes: 0 } })
    expect(stopped.report).toBeUndefined()
    running?.release()
    await flush()
    expect(stopped.report).toEqual({ drained: true, active: 0, queued: 0 })
    expectQuiet({ core, clock })
  })

  it('DRN-3 is driven by events: without a grace time it starts no timer', async () => {
    const { core, clock, hold } = setup(single)
    const running = hold()
    const stopped = core.stop()
    clock.advance(1_000_000)
    expect(clock.timersStarted).toBe(0)
    running.release()
    expect(await stopped).toEqual({ drained: true, active: 0, queued: 0 })
  })

  it('DRN-3 resolves at once when nothing runs, also while disabled', async () => {
    for (const config of [undefined, single]) {
      const { core, clock } = setup(config)
      expect(await core.stop({ graceMs: 1000 })).toEqual({ drained: true, active: 0, queued: 0 })
      expect(reasonOf(core)).toBe('stopped')
      expectQuiet({ core, clock })
    }
  })

  it('DRN-3 resolves at graceMs with what is left; those calls go on and their permits come back', async () => {
    const { core, clock, hold, flush } = setup({ global: { concurrency: 5 } })
    const running = [hold(), hold()]
    const stopped = follow(core.stop({ graceMs: 100 }))
    clock.advance(99)
    await flush()
    expect(stopped.report).toBeUndefined()
    clock.advance(1)
    await flush()
    expect(stopped.report).toEqual({ drained: false, active: 2, queued: 0 })
    for (const call of running) call.release()
    expectQuiet({ core, clock })
  })

  it('DRN-3 waits for every generation, and for calls that are only tracked', async () => {
    const { core, clock, hold, flush } = setup({ global: { concurrency: 5 } })
    const first = hold()
    await core.update({ global: { concurrency: 6 } })
    const second = hold()
    core.disable()
    const tracked = core.track()
    const stopped = follow(core.stop())
    for (const each of [second, tracked, first]) {
      await flush()
      expect(stopped.report).toBeUndefined()
      each.release()
    }
    await flush()
    expect(stopped.report).toEqual({ drained: true, active: 0, queued: 0 })
    expectQuiet({ core, clock })
  })

  it('DRN-7 a second stop gets the same promise and may bring the deadline nearer, never push it out', async () => {
    const { core, clock, hold, flush } = setup(single)
    const running = hold()
    const first = core.stop({ graceMs: 1000 })
    const stopped = follow(first)
    expect(core.stop({ graceMs: 5000 })).toBe(first)
    expect(core.stop()).toBe(first)
    clock.advance(100)
    expect(core.stop({ graceMs: 200 })).toBe(first)
    clock.advance(199)
    await flush()
    expect(stopped.report).toBeUndefined()
    clock.advance(1) // 300
    await flush()
    expect(stopped.report).toEqual({ drained: false, active: 1, queued: 0 })
    running.release()
    expectQuiet({ core, clock })
  })

  it('DRN-7 a stop without a grace time may be given one later', async () => {
    const { core, clock, hold, flush } = setup(single)
    const running = hold()
    const stopped = follow(core.stop())
    void core.stop({ graceMs: 50 })
    clock.advance(50)
    await flush()
    expect(stopped.report?.drained).toBe(false)
    running.release()
    expectQuiet({ core, clock })
  })

  it('DRN-3 graceMs 0 reports what is left in the next turn', async () => {
    const { core, clock, hold, flush } = setup(single)
    const running = hold()
    const stopped = follow(core.stop({ graceMs: 0 }))
    clock.advance(0)
    await flush()
    expect(stopped.report).toEqual({ drained: false, active: 1, queued: 0 })
    running.release()
    expectQuiet({ core, clock })
  })

  it.each([-1, Number.NaN])('DRN-3 graceMs %d is a mistake', (graceMs) => {
    const { core } = setup(single)
    expect(() => core.stop({ graceMs })).toThrow(RangeError)
    expect(core.state).toBe('enabled')
  })

  it('DRN-6 stopped is the reason even while draining, and drain and resume fail', () => {
    const { core, clock } = setup(single)
    core.drain({ announceMs: 100 })
    void core.stop()
    expect(reasonOf(core)).toBe('stopped')
    expect(() => core.drain()).toThrow(AdmissionStateError)
    expect(() => core.resume()).toThrow(AdmissionStateError)
    clock.advance(1000)
    expect(reasonOf(core)).toBe('stopped')
    expect([core.ready, core.state]).toEqual([false, 'stopped'])
    expectQuiet({ core, clock })
  })

  it('DRN-3 a stop in the turn of a release leaves the granted waiter its lease', async () => {
    const { core, clock, hold, flush } = setup(single)
    const [running, waiting] = [hold(), hold()]
    running.release()
    const stopped = follow(core.stop())
    await flush()
    expect([waiting.started, stopped.report]).toEqual([true, undefined])
    waiting.release()
    await flush()
    expect(stopped.report?.drained).toBe(true)
    expectQuiet({ core, clock })
  })
})

describe('whenIdle', () => {
  it('DRN-3 resolves when nothing runs and nothing waits, at once if that is so now', async () => {
    const { core, clock, hold, flush } = setup(single)
    await core.whenIdle()
    const [running, waiting] = [hold(), hold()]
    let isIdle = false
    void core.whenIdle().then(() => {
      isIdle = true
    })
    running.release()
    await flush()
    expect(isIdle).toBe(false)
    waiting.release()
    await flush()
    expect(isIdle).toBe(true)
    expect(core.state).toBe('enabled')
    expectQuiet({ core, clock })
  })

  it('DRN-3 is told by waiters that expire or abort as well', async () => {
    const { core, clock, hold } = setup({ ...single, global: { concurrency: 0 } })
    for (const how of ['abort', 'expire']) {
      const waiting = hold()
      const idle = core.whenIdle()
      if (how === 'abort') waiting.abort()
      else clock.advance(1000)
      await idle
    }
    expectQuiet({ core, clock })
  })
})
