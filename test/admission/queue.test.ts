import { describe, expect, it } from 'vitest'
import type { ConfigInput, QueueInput } from '../../src/config/types.ts'
import { expectQuiet, type Held, reasonOf, setup } from '../support/core.ts'

const closed = (queue: QueueInput): ConfigInput => ({ queue, global: { concurrency: 0 } })
const single = (queue: QueueInput): ConfigInput => ({ queue, global: { concurrency: 1 } })
const leaveAll = (calls: readonly Held[]): void => {
  for (const call of calls) call.abort()
}

describe('reservations', () => {
  it('QUE-1 a waiter reserves one call and its bytes', () => {
    const { core, clock, hold } = setup(closed({ maxQueuedCalls: 9 }))
    const calls = [hold({ bytes: 10 }), hold(), hold({ bytes: 0 }), hold({ bytes: 5 })]
    expect(core.snapshot()).toMatchObject({ active: 0, queued: { calls: 4, bytes: 15 }, totals: { queued: 4 } })
    leaveAll(calls)
    expectQuiet({ core, clock })
  })

  it.each(['admitted', 'timed out', 'aborted', 'stopped'])(
    'QUE-1 the reservation is returned exactly once when the waiter is %s',
    async (how) => {
      const { core, clock, hold, flush } = setup(single({ maxQueuedCalls: 9, maxQueueDelayMs: 100 }))
      const running = hold()
      const waiting = hold({ bytes: 7 })
      const outcome = {
        admitted: () => running.release(),
        'timed out': () => clock.advance(100),
        aborted: () => waiting.abort(),
        stopped: () => void core.stop(),
      }[how]
      outcome?.()
      expect(core.snapshot().queued).toEqual({ calls: 0, bytes: 0, oldestWaitMs: 0 })
      waiting.abort() // too late to matter
      clock.advance(1000)
      await flush()
      expect(core.snapshot().queued).toEqual({ calls: 0, bytes: 0, oldestWaitMs: 0 })
      if (how === 'admitted') waiting.release()
      else running.release()
      expectQuiet({ core, clock })
    },
  )

  it('QUE-2 refuses the call beyond maxQueuedCalls, and takes one again when another has left', () => {
    const { core, clock, hold } = setup(closed({ maxQueuedCalls: 2 }))
    const calls = [hold(), hold()]
    expect(hold().refusal).toEqual({ kind: 'refused', reason: 'queue_calls', scope: 'global' })
    calls[0]?.abort()
    const next = hold()
    expect(next.waiting).toBe(true)
    leaveAll([...calls, next])
    expectQuiet({ core, clock })
  })

  it('QUE-2 takes bytes up to the bound exactly, and not one more', () => {
    const { core, clock, hold } = setup(closed({ maxQueuedCalls: 9, maxQueuedBytes: 100 }))
    const calls = [hold({ bytes: 60 }), hold({ bytes: 40 })]
    expect(calls.map((call) => call.waiting)).toEqual([true, true])
    expect(hold({ bytes: 1 }).refusal).toEqual({ kind: 'refused', reason: 'queue_bytes', scope: 'global' })
    leaveAll(calls)
    expect(hold({ bytes: 101 }).refusal?.reason).toBe('queue_bytes')
    expectQuiet({ core, clock })
  })

  it('QUE-2 a call of zero bytes is never refused for bytes, even above the bound', async () => {
    const { core, clock, hold } = setup(closed({ maxQueuedCalls: 9, maxQueuedBytes: 100 }))
    const calls = [hold({ bytes: 100 }), hold({ bytes: 0 }), hold()]
    await core.update(closed({ maxQueuedCalls: 9, maxQueuedBytes: 1 }))
    calls.push(hold({ bytes: 0 }))
    expect(calls.every((call) => call.waiting)).toBe(true)
    leaveAll(calls)
    expectQuiet({ core, clock })
  })

  it('QUE-8 an unknown body reserves unknownBodyBytes of the captured program, also when it returns them', async () => {
    const { core, clock, hold } = setup(closed({ maxQueuedCalls: 9, unknownBodyBytes: 1000 }))
    const first = hold({ bytes: 'unknown' })
    await core.update(closed({ maxQueuedCalls: 9, unknownBodyBytes: 30 }))
    const second = hold({ bytes: 'unknown' })
    expect(core.snapshot().queued.bytes).toBe(1030)
    first.abort()
    expect(core.snapshot().queued.bytes).toBe(30)
    second.abort()
    expectQuiet({ core, clock })
  })

  it('QUE-8 unknown bytes default to 64 KiB and the bound on bytes to 16 MiB', () => {
    const { core, clock, hold } = setup(closed({ maxQueuedCalls: 1000 }))
    const calls = Array.from({ length: 256 }, () => hold({ bytes: 'unknown' }))
    expect(core.snapshot().queued).toMatchObject({ calls: 256, bytes: 16 * 1024 * 1024 })
    expect(hold({ bytes: 'unknown' }).refusal?.reason).toBe('queue_bytes')
    leaveAll(calls)
    expectQuiet({ core, clock })
  })

  it('QUE-1 bytes of a call that starts at once are not counted and not looked at', () => {
    const { core, clock } = setup(single({ maxQueuedCalls: 1, maxQueuedBytes: 10 }))
    let looks = 0
    const call = {
      get bytes() {
        looks += 1
        return 1000
      },
      get oneWay() {
        looks += 1
        return true
      },
    }
    const answer = core.admit(call)
    expect([answer instanceof Promise, looks]).toEqual([false, 0])
    if ('release' in answer) answer.release()
    expectQuiet({ core, clock })
  })

  it.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])(
    'ADM-7 a call that claims %d bytes is a mistake of the caller and leaves nothing behind',
    (bytes) => {
      const { core, clock, hold } = setup(
        { ...closed({ maxQueuedCalls: 9 }), contracts: { '/a': { partitions: { tenant: { concurrency: 1 } } } } },
        { selectors: { tenant: () => 'acme' } },
      )
      expect(() => hold({ contract: '/a', bytes })).toThrow(RangeError)
      expectQuiet({ core, clock })
    },
  )

  it.each([
    ['the controller', new AbortController()],
    ['a function that returns null', () => null],
    ['a signal of another make', { aborted: false }],
  ])('ADM-7 %s in place of a signal is a mistake of the caller and stops nobody else', async (_, mistake) => {
    const contracts = { '/a': { concurrency: 1, partitions: { tenant: { concurrency: 1 } } } }
    const selectors = { tenant: () => 'acme' }
    const { core, clock, hold, flush } = setup({ contracts, queue: { maxQueuedCalls: 9 } }, { selectors })
    const call = { contract: '/a' }
    const running = hold(call)
    expect(() => core.admit({ ...call, signal: Object(mistake) })).toThrow(TypeError)
    const waiting = hold(call)
    running.release()
    await flush()
    waiting.release()
    expectQuiet({ core, clock })
  })
})

describe('one-way calls', () => {
  it('QUE-4 a one-way call that finds no room is refused at once unless the queue takes one-way calls', () => {
    const { core, clock, hold } = setup(closed({ maxQueuedCalls: 9 }))
    expect(hold({ oneWay: true }).refusal).toEqual({ kind: 'refused', reason: 'one_way', scope: 'global' })
    const twoWay = hold({ oneWay: false })
    expect(twoWay.waiting).toBe(true)
    twoWay.abort()
    expectQuiet({ core, clock })
  })

  it('QUE-4 a one-way call that finds room starts, whatever the setting', () => {
    const { core, clock, hold } = setup(single({ maxQueuedCalls: 9 }))
    hold({ oneWay: true }).release()
    expectQuiet({ core, clock })
  })

  it('QUE-4 the setting is that of the captured program, in both directions', async () => {
    const { core, clock, hold, flush } = setup(single({ maxQueuedCalls: 9, queueOneWayCalls: true }))
    const running = hold()
    const queued = hold({ oneWay: true })
    await core.update(single({ maxQueuedCalls: 9, queueOneWayCalls: false }))
    expect(reasonOf(core, { oneWay: true })).toBe('one_way')
    const twoWay = hold()
    expect([queued.waiting, twoWay.waiting]).toEqual([true, true])
    await core.update(single({ maxQueuedCalls: 9, queueOneWayCalls: true }))
    const again = hold({ oneWay: true })
    expect(again.waiting).toBe(true)
    running.release()
    await flush()
    expect([queued.started, twoWay.started]).toEqual([true, false])
    queued.release()
    await flush()
    twoWay.release()
    await flush()
    again.release()
    expectQuiet({ core, clock })
  })
})

describe('aborts', () => {
  it('QUE-5 an aborted waiter leaves the queue at once and is never started', async () => {
    const { core, clock, hold, flush } = setup(single({ maxQueuedCalls: 1 }))
    const [running, waiting] = [hold(), hold()]
    waiting.abort()
    expect(core.snapshot().queued.calls).toBe(0)
    running.release()
    clock.advance(0)
    await flush()
    expect(waiting.refusal).toEqual({ kind: 'refused', reason: 'aborted' })
    expectQuiet({ core, clock })
  })

  it('QUE-5 its room in the queue is free in the same step', () => {
    const { core, clock, hold } = setup(closed({ maxQueuedCalls: 1 }))
    const first = hold()
    first.abort()
    const second = hold()
    expect(second.waiting).toBe(true)
    second.abort()
    expectQuiet({ core, clock })
  })

  it('RUN-2 an abort after the grant, in the same turn, is ignored: the lease stands', async () => {
    const { core, clock, hold, flush } = setup(single({ maxQueuedCalls: 1 }))
    const [running, waiting] = [hold(), hold()]
    running.release()
    waiting.abort()
    await flush()
    expect(waiting.started).toBe(true)
    expect(core.snapshot().totals.refused.aborted).toBe(0)
    waiting.release()
    expectQuiet({ core, clock })
  })

  it('RUN-2 no listener stays on the signal of a call that has its answer', async () => {
    const signal = new AbortController().signal
    const listeners = new Set<unknown>()
    const add = signal.addEventListener.bind(signal)
    const remove = signal.removeEventListener.bind(signal)
    signal.addEventListener = (type: string, listener: EventListenerOrEventListenerObject) => {
      listeners.add(listener)
      add(type, listener)
    }
    signal.removeEventListener = (type: string, listener: EventListenerOrEventListenerObject) => {
      listeners.delete(listener)
      remove(type, listener)
    }
    const { core, clock, hold, flush } = setup(single({ maxQueuedCalls: 9, maxQueueDelayMs: 50 }))
    const running = hold({ signal })
    expect(listeners.size).toBe(0)
    const waiting = [hold({ signal }), hold({ signal })]
    expect(listeners.size).toBe(2)
    running.release()
    clock.advance(50)
    await flush()
    expect(listeners.size).toBe(0)
    expect(waiting[1]?.refusal?.reason).toBe('queue_timeout')
    waiting[0]?.release()
    expectQuiet({ core, clock })
  })

  it('QUE-5 many calls on one signal all leave when it aborts', () => {
    const aborter = new AbortController()
    const { core, clock, hold } = setup(single({ maxQueuedCalls: 99 }))
    const running = hold()
    for (let index = 0; index < 10; index += 1) hold({ signal: aborter.signal, bytes: index })
    aborter.abort()
    expect(core.snapshot()).toMatchObject({ queued: { calls: 0, bytes: 0 }, totals: { refused: { aborted: 10 } } })
    running.release()
    expectQuiet({ core, clock })
  })
})
