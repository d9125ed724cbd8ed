import { describe, expect, it } from 'vitest'
import { AdmissionCore } from '../../src/admission-core.ts'
import type { ConfigInput } from '../../src/config/types.ts'
import { ManualClock } from '../../src/manual-clock.ts'
import { expectQuiet, type Held, holdCall, lineup, scopeOf, setup, watch } from '../support/core.ts'
import { randomFrom } from '../support/random.ts'

const queue = { maxQueuedCalls: 1000, maxQueueDelayMs: 1000 }
const both = { contract: '/a', method: 'm', keys: { tenant: 't' } }
const crossed: ConfigInput = {
  queue,
  global: { partitions: { tenant: { concurrency: 1 } } },
  contracts: { '/a': { methods: { m: { concurrency: 1 } } } },
}
const selectors = { tenant: () => undefined }

describe('attempts to break the queue', () => {
  it('QUE-5 one signal that aborts ten waiters takes exactly those, and the others start in order', async () => {
    const { core, clock, flush } = setup({ queue, global: { concurrency: 1 }, contracts: { '/a': { concurrency: 1 } } })
    const aborter = new AbortController()
    const running = holdCall(core, { contract: '/a' })
    const { started, call } = lineup(core)
    const shared = Array.from({ length: 10 }, (_, index) =>
      call(`shared ${index}`, { contract: '/a', signal: aborter.signal }),
    )
    const others = ['x', 'y'].map((name) => call(name))
    // Room for one comes in the same turn as the abort: neither may hide the other.
    running.release()
    aborter.abort()
    await flush()
    expect(shared.map((each) => each.refusal?.reason)).toEqual([undefined, ...Array(9).fill('aborted')])
    expect(started).toEqual(['shared 0'])
    shared[0]?.release()
    await flush()
    expect(started).toEqual(['shared 0', 'x'])
    for (const each of others) {
      each.release()
      await flush()
    }
    expectQuiet({ core, clock })
  })

  it.each(['the release', 'the timer'])(
    'QUE-10 QUE-12 at the deadline a waiter times out, even if %s comes first',
    async (first) => {
      const { core, clock, hold, flush } = setup({ queue, global: { concurrency: 1 } })
      const [running, waiting] = [hold(), hold()]
      if (first === 'the timer') clock.advance(1000)
      else clock.set(1000) // no timer has rung yet
      running.release()
      await flush()
      expect(waiting.refusal?.reason).toBe('queue_timeout')
      clock.advance(1)
      expectQuiet({ core, clock })
    },
  )

  it('QUE-9 two hundred waiters with as many delays need two timers at most, and each is expired on its instant', async () => {
    const clock = new ManualClock()
    const config = (maxQueueDelayMs: number): ConfigInput => ({
      queue: { maxQueuedCalls: 10_000, maxQueueDelayMs },
      global: { concurrency: 1 },
    })
    const core = new AdmissionCore({ clock, config: config(1) })
    const running = watch(core.admit())
    const random = randomFrom(7)
    const delays: number[] = []
    for (let count = 0; count < 200; count += 1) {
      const delayMs = 1 + random(500)
      await core.update(config(delayMs))
      watch(core.admit())
      delays.push(delayMs)
      expect(clock.pending).toBeLessThanOrEqual(2)
    }
    for (let atMs = 1; atMs <= 500; atMs += 1) {
      clock.advance(1)
      expect(core.snapshot().queued.calls).toBe(delays.filter((delayMs) => delayMs > atMs).length)
    }
    expect(core.snapshot().generations).toHaveLength(2) // the one that runs and the current
    running.release()
    expectQuiet({ core, clock })
  })

  it('PUB-8 a hook that releases, admits and publishes from within every change loses nothing', async () => {
    const clock = new ManualClock()
    const held: Held[] = []
    let depth = 0
    const core: AdmissionCore = new AdmissionCore({
      clock,
      config: { queue, global: { concurrency: 1 } },
      onPublish: ({ to }) => {
        if (depth >= 3) return
        depth += 1
        held.push(watch(core.admit()))
        for (const each of held) if (each.started) each.release()
        if (to.state === 'enabled') void core.update({ queue, global: { concurrency: depth } })
        depth -= 1
      },
    })
    for (let round = 0; round < 5; round += 1) {
      held.push(watch(core.admit()), watch(core.admit()))
      await core.update({ queue, global: { concurrency: 1 + (round % 3) } })
      if (round === 2) core.disable()
      if (round === 2) core.enable({ queue, global: { concurrency: 1 } })
    }
    for (let round = 0; round < 100; round += 1) {
      for (const each of held) if (each.started) each.release()
      await Promise.resolve()
    }
    expect(held.every((each) => each.started || each.refusal !== undefined)).toBe(true)
    expectQuiet({ core, clock })
  })

  it('ADM-1 CON-4 a selector that admits a call of the same key itself gets one permit, not two', () => {
    const clock = new ManualClock()
    const inner: Held[] = []
    const core: AdmissionCore = new AdmissionCore({
      clock,
      selectors: {
        tenant: () => 't',
        user: (call) => {
          if (call.oneWay === undefined) inner.push(watch(core.admit({ oneWay: true })))
          return undefined
        },
      },
      config: { global: { partitions: { tenant: { concurrency: 1 }, user: { concurrency: 1 } }, concurrency: 1 } },
    })
    const outer = watch(core.admit())
    expect([outer.started, inner[0]?.started]).toEqual([false, true])
    expect(scopeOf(core, 'global').active).toBe(1)
    inner[0]?.release()
    if (outer.started) outer.release()
    expectQuiet({ core, clock })
  })

  it('ADM-5 a departure from the middle that no release follows still starts whoever it held up', async () => {
    const { core, clock, hold, flush } = setup(crossed, { selectors })
    // `waiting` is protected after 64 passes; what is kept for it holds up calls that need one scope only.
    let running = hold({ contract: '/a', method: 'm' })
    const blocker = hold({ keys: { tenant: 't' } })
    const waiting = hold(both)
    for (let count = 0; count < 64; count += 1) {
      running.release()
      running = hold({ contract: '/a', method: 'm' })
    }
    running.release()
    const heldUp = [hold({ contract: '/a', method: 'm' }), hold({ keys: { tenant: 't' } })]
    expect(heldUp.map((each) => each.waiting)).toEqual([true, true])
    waiting.abort()
    await flush()
    expect(heldUp.map((each) => each.started)).toEqual([true, false])
    blocker.release()
    await flush()
    expect(heldUp[1]?.started).toBe(true)
    for (const each of heldUp) each.release()
    expectQuiet({ core, clock })
  })

  it('STA-3 CON-2 a scope that is removed while full, and comes back closed, keeps its count and starts nobody', async () => {
    const config = (concurrency: number | undefined): ConfigInput => ({
      queue,
      global: concurrency === undefined ? {} : { concurrency },
    })
    const { core, clock, hold, flush } = setup(config(2))
    const running = [hold(), hold()]
    const waiting = hold()
    await core.update(config(undefined))
    expect(scopeOf(core, 'global')).toEqual({ limit: 2, active: 2, waiting: 1 })
    core.disable()
    core.enable(config(0))
    expect(scopeOf(core, 'global')).toEqual({ limit: 0, active: 2, waiting: 1 })
    for (const each of running) each.release()
    await flush()
    expect(waiting.waiting).toBe(true)
    await core.update(config(undefined))
    await flush()
    // STA-5: nothing names the scope, so the last limit, 0, still holds for who waits for it.
    expect(waiting.waiting).toBe(true)
    await core.update(config(1))
    await flush()
    expect(waiting.started).toBe(true)
    waiting.release()
    expectQuiet({ core, clock })
  })

  it.each(['a newcomer', 'a waiter'])(
    'ADM-6 ADM-5 when %s is the 64th to pass an older waiter, what was kept for a younger one goes out at once',
    async (who) => {
      const { core, clock, hold, flush } = setup(
        {
          queue,
          global: { partitions: { tenant: { concurrency: 1 } } },
          contracts: { '/a': { methods: { m1: { concurrency: 1 }, m2: { concurrency: 1 } } } },
        },
        { selectors },
      )
      const tenant = { keys: { tenant: 't' } }
      const [m1, m2] = [
        { contract: '/a', method: 'm1' },
        { contract: '/a', method: 'm2' },
      ]
      const blocker = hold(tenant)
      const running = { m1: hold(m1), m2: hold(m2) }
      const [older, younger] = [hold({ ...m2, ...tenant }), hold({ ...m1, ...tenant })]
      for (let count = 0; count < 64; count += 1) {
        running.m1.release()
        running.m1 = hold(m1)
      }
      running.m1.release()
      const heldUp = hold(m1) // the room is kept for `younger`
      for (let count = 0; count < 63; count += 1) {
        running.m2.release()
        running.m2 = hold(m2)
      }
      expect([heldUp.waiting, running.m2.started]).toEqual([true, true])
      const last = who === 'a waiter' ? hold(m2) : undefined
      running.m2.release()
      running.m2 = last ?? hold(m2)
      await flush()
      expect([heldUp.started, running.m2.started, older.waiting, younger.waiting]).toEqual([true, true, true, true])
      running.m2.release()
      expect(hold({ ...m2, oneWay: true }).refusal?.reason).toBe('one_way') // now it is kept for `older`
      blocker.release()
      await flush()
      expect([older.started, younger.waiting]).toEqual([true, true])
      older.release()
      heldUp.release()
      await flush()
      expect(younger.started).toBe(true)
      younger.release()
      expectQuiet({ core, clock })
    },
  )
})
