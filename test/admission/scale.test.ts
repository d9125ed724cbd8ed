import { describe, expect, it } from 'vitest'
import type { Lease } from '../../src/admission/lease.ts'
import type { Refusal } from '../../src/refusal.ts'
import { expectQuiet, setup } from '../support/core.ts'

const MANY = 100_000
const STRIDE = 7919 // no factor in common with MANY: every index once, far from in order

describe('at scale', () => {
  it('QUE-7 of a hundred thousand waiters half cancel, some start in the order in which they came, and the rest expires', async () => {
    const { core, clock } = setup({
      queue: { maxQueuedCalls: MANY, maxQueueDelayMs: 1000 },
      global: { concurrency: 1 },
    })
    const running = core.admit()
    if (running instanceof Promise || running.kind === 'refused') throw new Error('Not admitted')
    const started: number[] = []
    const reasons = new Map<string, number>()
    const settle = (index: number, answer: Lease | Refusal): void => {
      if (answer.kind === 'refused') reasons.set(answer.reason, (reasons.get(answer.reason) ?? 0) + 1)
      else {
        started.push(index)
        if (started.length < MANY / 4) answer.release()
      }
    }
    const aborters = Array.from({ length: MANY }, () => new AbortController())
    const answers = aborters.map(({ signal }, index) => {
      const answer = core.admit({ signal })
      if (!(answer instanceof Promise)) throw new Error('Does not wait')
      return answer.then((late) => settle(index, late))
    })
    expect(core.snapshot().queued.calls).toBe(MANY)
    for (let count = 0; count < MANY; count += 1) {
      const index = (count * STRIDE) % MANY
      if (index % 2 === 1) aborters[index]?.abort()
    }
    expect(core.snapshot().queued.calls).toBe(MANY / 2)
    running.release()
    // Each start is a microtask, its release starts the next; the last one that started stays.
    while (started.length < MANY / 4) await Promise.resolve()
    expect(started).toEqual(Array.from({ length: MANY / 4 }, (_, at) => 2 * at))
    clock.advance(1000)
    await Promise.all(answers)
    expect(Object.fromEntries(reasons)).toEqual({ aborted: MANY / 2, queue_timeout: MANY / 4 })
    expect(core.snapshot()).toMatchObject({ active: 1, queued: { calls: 0, bytes: 0 } })
    expect(clock.pending).toBe(0)
  })

  it('PAR-1 PAR-2 a hundred thousand partitions are counted apart, bounded, and forgotten when idle', () => {
    const tenant = { maxPartitions: MANY, concurrency: 1, idleTimeoutMs: 60_000 }
    const { core, clock } = setup({ global: { partitions: { tenant } } }, { selectors: { tenant: () => undefined } })
    const admit = (key: string) => core.admit({ keys: { tenant: key } })
    const leases: Lease[] = []
    for (let index = 0; index < MANY; index += 1) {
      const answer = admit(`tenant-${index}`)
      if (answer instanceof Promise || answer.kind === 'refused') throw new Error('Not admitted')
      leases.push(answer)
    }
    for (let index = 0; index < MANY; index += 997) {
      expect(admit(`tenant-${index}`)).toMatchObject({ reason: 'partition_concurrency' })
    }
    expect(admit('one more')).toMatchObject({ reason: 'partition_limit' })
    expect(core.snapshot().partitions).toMatchObject([{ partitions: MANY, active: MANY }])
    for (const lease of leases) lease.release()
    clock.advance(120_000)
    for (let index = 0; index < MANY / 32; index += 1) {
      const answer = admit(`later-${index}`)
      if (answer instanceof Promise || answer.kind === 'refused') throw new Error('Not admitted')
      answer.release()
    }
    expect(core.snapshot().partitions[0]?.partitions).toBeLessThan(MANY / 2)
    expectQuiet({ core, clock })
  })
})
