import { describe, expect, it } from 'vitest'
import type { Lease } from '../../src/admission/lease.ts'
import type { AdmissionCore } from '../../src/admission-core.ts'
import type { Call } from '../../src/call.ts'
import { expectQuiet, setup, watch } from '../support/core.ts'

const partitions = { tenant: { concurrency: 5 } }

/** A core whose selector runs `inside` once, in the middle of judging a call. */
function judging(inside: (core: AdmissionCore) => void, config = {}) {
  let isInside = false
  const made = setup(
    { global: { concurrency: 1, partitions }, ...config },
    {
      selectors: {
        tenant: () => {
          if (isInside) return 'inner'
          isInside = true
          inside(made.core)
          isInside = false
          return 'outer'
        },
      },
    },
  )
  return made
}

describe("the caller's code inside a decision", () => {
  it('ADM-1 a selector that admits a call itself takes the permit before its own call is judged', () => {
    const inner: Lease[] = []
    const { core, clock, hold } = judging((within) => {
      const answer = within.admit()
      if (!(answer instanceof Promise) && answer.kind === 'admitted') inner.push(answer)
    })
    expect(hold().refusal?.reason).toBe('concurrency')
    expect(inner).toHaveLength(1)
    inner[0]?.release()
    expectQuiet({ core, clock })
  })

  it('ADM-5 a selector that releases a call gives its own call the room', () => {
    const held: Lease[] = []
    const { core, clock, hold } = judging(() => held.pop()?.release())
    const first = hold()
    held.push(first.lease)
    const second = hold()
    expect(second.started).toBe(true)
    second.release()
    expectQuiet({ core, clock })
  })

  const again = { global: { concurrency: 1, partitions } }
  const writes: [string, (core: AdmissionCore) => unknown][] = [
    ['disables and enables', (core) => [core.disable(), core.enable(again)]],
    [
      'takes the limit away and brings it back',
      (core) => [core.update({ global: { partitions } }), core.update(again)],
    ],
  ]

  it.each(writes)('STA-3 CON-4 a selector that %s loses no permit that its own call takes then', (_, write) => {
    const { core, clock, hold } = judging((within) => void write(within))
    const first = hold()
    expect(first.lease.generation).toBe(core.generation)
    expect(core.snapshot().active).toBe(1)
    expect(hold().refusal?.reason).toBe('concurrency')
    first.release()
    expectQuiet({ core, clock })
  })

  it('PUB-6 a selector that publishes has its own call judged by what is published, and is asked once', () => {
    const asked: string[] = []
    const delivery = { key: 'user', maxOpenBodies: 1 }
    const { core, clock, hold } = setup(again, {
      selectors: {
        tenant: () => {
          asked.push('tenant')
          void core.update({ ...again, contracts: { '/a': { concurrency: 1, delivery } } })
          return 'one'
        },
        user: () => {
          asked.push('user')
          return 'two'
        },
      },
    })
    const running = hold({ contract: '/a' })
    expect(running.lease).toMatchObject({ generation: 2, scopes: ['global', 'global#tenant', 'contract:/a'], delivery })
    expect(asked).toEqual(['tenant', 'user'])
    running.release()
    expectQuiet({ core, clock })
  })

  it('DRN-1 DRN-3 a selector that drains, stops or disables has that apply to its own call', async () => {
    const drained = judging((core) => core.drain())
    expect(drained.hold().refusal?.reason).toBe('draining')
    const reports: unknown[] = []
    const stopped = judging((core) => void core.stop().then((report) => reports.push(report)))
    expect(stopped.hold().refusal?.reason).toBe('stopped')
    await stopped.flush()
    expect(reports).toEqual([{ drained: true, active: 0, queued: 0 }])
    const disabled = judging((core) => core.disable())
    expect(disabled.hold().started).toBe(true)
    expect(disabled.core.snapshot().totals.admitted).toBe(1)
    for (const made of [drained, stopped, disabled]) expectQuiet(made)
  })

  /** A call whose signal, bytes or oneWay runs `inside` when it is read. */
  function lazy(property: string, inside: () => void): Call {
    const value = () => {
      inside()
      return undefined
    }
    return property === 'signal' ? { signal: value } : Object.defineProperty({}, property, { get: value })
  }

  it('RUN-2 a call that comes in anew is still asked for its signal as the object that it is', async () => {
    class OwnCall implements Call {
      readonly #aborter = new AbortController()

      get oneWay() {
        core.admit().valueOf()
        return false
      }

      signal() {
        return this.#aborter.signal
      }

      abort() {
        this.#aborter.abort()
      }
    }
    const { core, hold, flush } = setup({ global: { concurrency: 1 }, queue: { maxQueuedCalls: 5 } })
    const running = hold()
    const call = new OwnCall()
    const waiting = watch(core.admit(call))
    expect(waiting.waiting).toBe(true)
    call.abort()
    await flush()
    expect(waiting.refusal?.reason).toBe('aborted')
    running.release()
  })

  it.each(['signal', 'bytes', 'oneWay'])(
    'QUE-2 reading %s may fill the queue: its own call then finds it full',
    (name) => {
      const { core, hold, clock } = setup({ global: { concurrency: 1 }, queue: { maxQueuedCalls: 1 } })
      const running = hold()
      const outer = core.admit(lazy(name, () => void core.admit()))
      expect(outer).toMatchObject({ reason: 'queue_calls' })
      expect(core.snapshot().queued.calls).toBe(1)
      clock.advance(1000)
      running.release()
      expectQuiet({ core, clock })
    },
  )

  it.each(['signal', 'bytes', 'oneWay'])(
    'ADM-5 reading %s may release a call: its own call then starts at once',
    (name) => {
      const { core, hold, clock } = setup({ global: { concurrency: 1 }, queue: { maxQueuedCalls: 1 } })
      const running = hold()
      const outer = core.admit(lazy(name, () => running.release()))
      if (outer instanceof Promise || outer.kind === 'refused') throw new Error('it waits or was refused')
      outer.release()
      expectQuiet({ core, clock })
    },
  )

  it('ADM-5 ADM-10 a call that makes room while it says why it may not wait starts, whatever it says', () => {
    for (const [name, value, queue] of [
      ['oneWay', true, { maxQueuedCalls: 1 }],
      ['oneWay', true, { maxQueuedCalls: 1, queueOneWayCalls: true }],
      ['bytes', 11, { maxQueuedCalls: 1, maxQueuedBytes: 10 }],
    ] as const) {
      const { core, hold, clock } = setup({ global: { concurrency: 1 }, queue })
      const running = hold()
      let reads = 0
      const read = (): unknown => {
        reads += 1
        running.release()
        return value
      }
      const outer = core.admit(Object.defineProperty({}, name, { get: read }))
      if (name === 'oneWay' && 'queueOneWayCalls' in queue) {
        expect([outer instanceof Promise, reads]).toEqual([true, 0]) // it was not asked
        running.release()
        clock.advance(0)
        continue
      }
      if (outer instanceof Promise || outer.kind === 'refused') throw new Error(`${name}: it waits or was refused`)
      expect(reads).toBe(1)
      outer.release()
      expectQuiet({ core, clock })
    }
  })

  it('ADM-5 a call that makes room where the queue is full starts', () => {
    const contracts = { '/a': { concurrency: 1 }, '/b': { concurrency: 0 } }
    const { core, hold } = setup({ contracts, queue: { maxQueuedCalls: 1 } })
    const running = hold({ contract: '/a' })
    expect(hold({ contract: '/b' }).waiting).toBe(true)
    const call = Object.defineProperty({ contract: '/a' }, 'oneWay', { get: () => void running.release() })
    expect(core.admit(call)).toMatchObject({ kind: 'admitted' })
  })

  it.each(['signal', 'bytes', 'oneWay'])('DRN-3 reading %s may stop: its own call does not wait on', (name) => {
    const { core, hold, clock } = setup({ global: { concurrency: 1 }, queue: { maxQueuedCalls: 1 } })
    const running = hold()
    expect(core.admit(lazy(name, () => void core.stop()))).toMatchObject({ reason: 'stopped' })
    running.release()
    expectQuiet({ core, clock })
  })

  it.each(['signal', 'bytes', 'oneWay'])(
    'STA-3 reading %s may take a scope away: its own call does not wait for it',
    async (name) => {
      const rate = { algorithm: 'fixed-window', permitLimit: 1, windowMs: 100 } as const
      const config = { global: { rate }, queue: { maxQueuedCalls: 1 }, contracts: { '/a': { concurrency: 1 } } }
      const { core, hold, clock, flush } = setup(config)
      hold().release()
      const call = lazy(name, () => void core.update({ ...config, contracts: {} }))
      const waiting = watch(core.admit(Object.defineProperty(call, 'contract', { value: '/a' })))
      expect(waiting.waiting).toBe(true)
      expect(core.snapshot().generations).toEqual([{ generation: 2, active: 0, queued: 1 }])
      clock.advance(100)
      await flush()
      waiting.release()
      expectQuiet({ core, clock })
    },
  )

  it('QUE-11 reading oneWay may take the only room that waiters are not due: then its own call has none', async () => {
    const queue = { maxQueuedCalls: 300 }
    const { core, hold, clock, flush } = setup({ global: { concurrency: 1 }, queue })
    const calls = Array.from({ length: 301 }, () => hold())
    const update = core.update({ global: { concurrency: 302 }, queue }) // a batch starts, the rest are due their room
    const call = Object.defineProperty({}, 'oneWay', { get: () => calls.push(hold({ oneWay: true })) > 0 })
    expect(core.admit(call)).toMatchObject({ reason: 'one_way' })
    await update
    clock.advance(0)
    await flush()
    expect(calls.filter(({ started }) => started)).toHaveLength(302)
    for (const each of calls) each.release()
    expectQuiet({ core, clock })
  })
})
