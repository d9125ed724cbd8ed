import { AdmissionCore } from '../../src/admission-core.ts'
import { parseConfig } from '../../src/config/parse.ts'
import type { Group, Reading, Size } from '../engine.ts'
import { collect, heapBytes, nextTurn, runtime } from '../host.ts'
import { StillClock } from '../still-clock.ts'
import { admitted, expectActive } from './leases.ts'
import { CONTRACT, METHOD, manyRules, THREE_SCOPES, threeScopes } from './limits.ts'

/**
 * Bytes that stay when `make` has made what it returns. Made once before, so that compilers have what they keep; that one
 * stays, too, for JSC may find it on the stack, and free it only after the first reading.
 */
async function retained(make: () => unknown): Promise<number> {
  const kept = [make()]
  await settled()
  const before = heapBytes()
  kept.push(make())
  await settled()
  const bytes = heapBytes() - before
  if (kept.length !== 2) throw new Error('What was made is gone')
  return bytes
}

/** Twice: what finalizers free, the second collection finds. */
async function settled(): Promise<void> {
  for (let round = 0; round < 3; round += 1) {
    collect()
    await nextTurn()
  }
}

async function heap(size: Size): Promise<readonly Reading[]> {
  const count = size === 'full' ? 10_000 : 1000
  const clock = new StillClock()
  const document = manyRules(count)
  const config = await retained(() => parseConfig(document))
  const rules = await retained(() => new AdmissionCore({ clock, config: document }))
  const partitions = await retained(() => partitioned(count))
  const waiters = await retained(() => waiting(count))
  return [
    { name: 'heap.rule', value: (rules - config) / count, unit: 'B', goal: 'P22', max: runtime === 'bun' ? 800 : 512 },
    { name: 'heap.rule.config', value: config / count, unit: 'B' },
    { name: 'heap.partition', value: partitions / count, unit: 'B', goal: 'P22', max: 320 },
    { name: 'heap.waiter', value: waiters / count, unit: 'B', goal: 'P22', max: 400 },
  ]
}

function partitioned(count: number): AdmissionCore {
  const tenant = { maxPartitions: 2 * count, concurrency: 5 }
  const core = new AdmissionCore({
    clock: new StillClock(),
    selectors: { tenant: () => undefined },
    config: { global: { partitions: { tenant } } },
  })
  for (let key = 0; key < count; key += 1) admitted(core.admit({ keys: { tenant: `tenant-${key}` } })).release()
  return core
}

function waiting(count: number): unknown {
  const queue = { maxQueuedCalls: count }
  const core = new AdmissionCore({ clock: new StillClock(), config: { queue, global: { concurrency: 1 } } })
  return [core, ...Array.from({ length: count + 1 }, () => core.admit())]
}

const ROUNDS = 4

/** What must not grow: permits taken and given back, programs published and retired, waiters that went away. */
async function leaks(size: Size): Promise<readonly Reading[]> {
  const times = size === 'full' ? 1 : 0.01
  const core = new AdmissionCore({ clock: new StillClock(), config: THREE_SCOPES })
  const bound = core.route(CONTRACT, METHOD)
  const admit = async (count: number): Promise<void> => {
    for (let left = count; left > 0; left -= 1) admitted(bound.admit()).release()
  }
  const publish = async (count: number): Promise<void> => {
    for (let left = count; left > 0; left -= 1) {
      const lease = admitted(bound.admit())
      await core.update(threeScopes(500 + (left % 500)))
      lease.release()
    }
  }
  const cancel = async (count: number): Promise<void> => {
    await core.update(threeScopes(1, { maxQueuedCalls: 1000 }))
    const running = admitted(bound.admit())
    for (let left = count; left > 0; left -= 100) {
      const aborter = new AbortController()
      const waiting = Array.from({ length: 100 }, () => bound.admit({ signal: aborter.signal }))
      aborter.abort()
      await Promise.all(waiting)
    }
    running.release()
  }
  const readings: Reading[] = []
  for (const [name, act, count] of [
    ['heap.leak.admissions', admit, 1_000_000],
    ['heap.leak.publications', publish, 10_000],
    ['heap.leak.cancelled', cancel, 100_000],
  ] as const) {
    // What leaks grows by as much each time; most of what compilers keep comes in the first.
    const bytes: number[] = []
    for (let round = 0; round <= ROUNDS; round += 1) {
      await act(Math.max(100, count * times))
      await settled()
      bytes.push(heapBytes())
    }
    expectActive(core, 0)
    const growth = ((bytes[ROUNDS] ?? 0) - (bytes[0] ?? 0)) / ROUNDS
    readings.push({ name, value: growth / 1024, unit: 'kB', goal: 'P23', max: 256, isHard: true })
  }
  return readings
}

export const heapGroup: Group = { name: 'heap', contestants: () => [], ratios: [], probe: heap }
export const leakGroup: Group = { name: 'heap.leak', contestants: () => [], ratios: [], probe: leaks }
