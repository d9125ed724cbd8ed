import { describe, expect, it } from 'vitest'
import type { Call } from '../../src/admission/call.ts'
import type { Lease } from '../../src/admission/lease.ts'
import type { AdmissionCore } from '../../src/admission-core.ts'
import { expectQuiet, setup } from '../support/core.ts'

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

  /** A call whose signal, bytes or oneWay runs `inside` when it is read. */
  function lazy(property: string, inside: () => void): Call {
    const value = () => {
      inside()
      return undefined
    }
    return property === 'signal' ? { signal: value } : Object.defineProperty({}, property, { get: value })
  }

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
})
