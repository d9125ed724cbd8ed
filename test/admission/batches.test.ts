import { describe, expect, it } from 'vitest'
import { MAX_STARTS } from '../../src/admission/queue.ts'
import { AdmissionCore } from '../../src/admission-core.ts'
import type { Clock } from '../../src/clock.ts'
import type { ConfigInput } from '../../src/config/types.ts'
import { expectQuiet, type Held, holdCall, lineup, scopeOf, setup } from '../support/core.ts'

const queue = { maxQueuedCalls: 2000, maxQueueDelayMs: 1000 }
const config = (concurrency: number, maxQueuedCalls = 2000): ConfigInput => ({
  queue: { ...queue, maxQueuedCalls },
  global: { concurrency },
})

/** A clock on which one call of `turn()` is one turn of the event loop: what it starts runs in the next. */
class TurnClock implements Clock {
  #time = 0
  #due: { atMs: number; fn: () => void }[] = []
  nowMs(): number {
    return this.#time
  }
  callAt(atMs: number, fn: () => void): () => void {
    const timer = { atMs, fn }
    this.#due.push(timer)
    return () => {
      this.#due = this.#due.filter((other) => other !== timer)
    }
  }
  get pending(): number {
    return this.#due.length
  }
  turn(ms = 0): void {
    this.#time += ms
    const due = this.#due.filter((timer) => timer.atMs <= this.#time)
    this.#due = this.#due.filter((timer) => !due.includes(timer))
    for (const { fn } of due) fn()
  }
}

function inTurns(waiters: number): { core: AdmissionCore; clock: TurnClock; held: Held[] } {
  const clock = new TurnClock()
  const core = new AdmissionCore({ clock, config: config(1) })
  const held = Array.from({ length: waiters + 1 }, () => holdCall(core, {}))
  return { core, clock, held }
}

describe('batches', () => {
  it('QUE-11 a large grow starts 256 waiters in the turn and the rest in later turns, with no further event', async () => {
    const { core, clock } = inTurns(700)
    await core.update(config(1000))
    const started = [core.snapshot().active]
    while (core.snapshot().queued.calls > 0) {
      clock.turn()
      started.push(core.snapshot().active)
    }
    expect(MAX_STARTS).toBe(256)
    expect(started).toEqual([257, 513, 701])
  })

  it('QUE-11 exactly 256 need no later turn', async () => {
    const { core, clock } = inTurns(256)
    await core.update(config(1000))
    expect(core.snapshot()).toMatchObject({ active: 257, queued: { calls: 0 } })
    expect(clock.pending).toBe(0)
  })

  it('QUE-11 a dispatch starts as many as fit and no more', async () => {
    const { core, clock } = inTurns(700)
    await core.update(config(300))
    clock.turn()
    clock.turn()
    expect(core.snapshot()).toMatchObject({ active: 300, queued: { calls: 401 } })
  })

  it('QUE-11 a release between two turns does not start more than the batch', async () => {
    const { core, clock, held } = inTurns(700)
    await core.update(config(1000))
    held[0]?.release()
    held[1]?.release()
    expect(core.snapshot()).toMatchObject({ active: 255, queued: { calls: 444 } })
    clock.turn()
    expect(core.snapshot()).toMatchObject({ active: 511, queued: { calls: 188 } })
  })

  it('QUE-11 newcomers stay behind the waiters of later batches', async () => {
    const clock = new TurnClock()
    const core = new AdmissionCore({ clock, config: config(1) })
    const { call, started } = lineup(core)
    for (let index = 0; index <= 600; index += 1) call(`waiter ${index}`)
    await core.update(config(1000))
    const newcomer = call('newcomer')
    expect(newcomer.immediate).toBe(false)
    for (let turn = 0; turn < 3; turn += 1) clock.turn()
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve()
    expect(started).toHaveLength(602)
    expect(started.at(-1)).toBe('newcomer')
  })

  it('QUE-11 a newcomer is not given room that the waiters of later batches are due', async () => {
    const { core, clock } = inTurns(600)
    await core.update(config(601))
    const newcomer = holdCall(core, {})
    expect(newcomer.waiting).toBe(true)
    clock.turn()
    clock.turn()
    expect(core.snapshot()).toMatchObject({ active: 601, queued: { calls: 1 } })
  })

  it('QUE-11 a newcomer that cannot wait is not given what the waiters of later batches are due', async () => {
    const { core, clock } = inTurns(600)
    await core.update({ global: { concurrency: 601 } })
    expect(holdCall(core, {}).refusal).toEqual({ kind: 'refused', reason: 'concurrency', scope: 'global' })
    clock.turn()
    clock.turn()
    expect(core.snapshot()).toMatchObject({ active: 601, queued: { calls: 0 } })
  })

  it('QUE-11 a newcomer that cannot wait starts when there is room for all the waiters and for it', async () => {
    const { core, clock } = inTurns(600)
    await core.update(config(1000, 344)) // as many as still wait
    expect(holdCall(core, { oneWay: true }).immediate).toBe(true)
    expect(holdCall(core, {}).immediate).toBe(true)
    clock.turn()
    clock.turn()
    expect(core.snapshot()).toMatchObject({ active: 603, queued: { calls: 0 } })
    expect(core.snapshot().totals.refused).toMatchObject({ one_way: 0, queue_calls: 0 })
  })

  it('QUE-11 a newcomer that shares no scope with the waiters starts at once', async () => {
    const clock = new TurnClock()
    const contracts = (concurrency: number): ConfigInput => ({
      queue,
      contracts: { '/a': { concurrency }, '/b': { concurrency: 1 } },
    })
    const core = new AdmissionCore({ clock, config: contracts(1) })
    for (let index = 0; index <= 600; index += 1) holdCall(core, { contract: '/a' })
    await core.update(contracts(1000))
    expect(scopeOf(core, 'contract:/a').active).toBe(257)
    expect(holdCall(core, { contract: '/b' }).immediate).toBe(true)
  })

  it('QUE-11 waiters of a pending batch can still abort, expire and be stopped', async () => {
    const { core, clock, held } = inTurns(700)
    await core.update(config(1000))
    held[700]?.abort()
    expect(core.snapshot().queued.calls).toBe(443)
    const report = core.stop()
    expect(core.snapshot()).toMatchObject({ active: 257, queued: { calls: 0 } })
    expect(clock.pending).toBe(0)
    for (const each of held.slice(0, 257)) {
      await Promise.resolve()
      each.release()
    }
    expect(await report).toEqual({ drained: true, active: 0, queued: 0 })
  })

  it('QUE-11 the deadline goes first for waiters of a pending batch', async () => {
    const { core, clock } = inTurns(700)
    await core.update(config(1000))
    clock.turn(1000)
    expect(core.snapshot()).toMatchObject({ active: 257, queued: { calls: 0 } })
    expect(core.snapshot().totals.refused.queue_timeout).toBe(444)
    expect(clock.pending).toBe(0)
  })

  it('QUE-11 a shrink between two turns is respected by the later batch', async () => {
    const { core, clock } = inTurns(700)
    await core.update(config(1000))
    await core.update(config(300))
    clock.turn()
    clock.turn()
    expect(core.snapshot()).toMatchObject({ active: 300, queued: { calls: 401 } })
  })

  it('QUE-11 on the manual clock everything has started after advancing by nothing', async () => {
    const { core, clock, hold, flush } = setup(config(1))
    const held = Array.from({ length: 1001 }, () => hold())
    await core.update(config(1001))
    clock.advance(0)
    await flush()
    for (const each of held) each.release()
    expectQuiet({ core, clock })
  })
})
