import { describe, expect, it } from 'vitest'
import type { AdmissionCore } from '../../src/admission-core.ts'
import type { Call } from '../../src/call.ts'
import type { ConfigInput } from '../../src/config/types.ts'
import { expectQuiet, setup } from '../support/core.ts'

const config = (concurrency: number): ConfigInput => ({
  queue: { maxQueuedCalls: 4, maxQueueDelayMs: 40 },
  global: {
    concurrency,
    rate: { algorithm: 'token-bucket', tokenLimit: 3, tokensPerPeriod: 1, replenishmentPeriodMs: 10 },
  },
  contracts: {
    '/a': { concurrency: 1, partitions: { tenant: { concurrency: 1 } }, methods: { slow: { concurrency: 1 } } },
  },
})
const calls: readonly Call[] = [
  { contract: '/a', method: 'slow', bytes: 5 },
  {},
  { contract: '/a', bytes: 7 },
  { contract: '/a', method: 'slow' },
  { contract: '/b', bytes: 1 },
  { oneWay: true },
  {},
]

/** Something that happens to one call, or to the server, between two of its steps. */
type Interrupt = (core: AdmissionCore, abort: () => void) => unknown
const interrupts: { readonly [name: string]: Interrupt } = {
  'an abort': (_, abort) => abort(),
  'a handler that throws': () => {
    throw new Error('interrupted')
  },
  'a shrink': (core) => core.update(config(1)),
  'a grow': (core) => core.update(config(5)),
  'a pause': (core) => core.update({ ...config(1), global: { ...config(1).global, concurrency: 0 } }),
  'an update that loses': (core) => {
    const update = core.update(async () => config(9))
    void core.update(config(2))
    return update.catch(() => undefined)
  },
  'disable and enable': (core) => {
    core.disable()
    core.enable(config(2))
  },
  'a drain and a resume': (core) => {
    core.drain()
    core.resume()
  },
  'a stop': (core) => void core.stop(),
}

/** One call with a handler of two steps; `step` is called at each await. */
async function run(core: AdmissionCore, call: Call, step: () => unknown): Promise<void> {
  await step()
  const answer = await core.admit(call)
  try {
    await step()
    if (answer.kind === 'admitted') await step()
  } finally {
    if (answer.kind === 'admitted') answer.release()
  }
}

/** Plays all calls; the interruption comes at await number `at`. Says how many awaits there were. */
async function play(at: number, interrupt: Interrupt): Promise<number> {
  const made = setup(config(2), { selectors: { tenant: () => 'acme' } })
  const { core, clock, flush } = made
  let awaits = 0
  const running = new Set<Promise<void>>()
  for (const call of calls) {
    const aborter = new AbortController()
    const step = (): unknown => (awaits++ === at ? interrupt(core, () => aborter.abort()) : undefined)
    const ended = run(core, { ...call, signal: aborter.signal }, step).catch(() => undefined)
    running.add(ended)
    void ended.then(() => running.delete(ended))
  }
  for (let round = 0; round < 60 && running.size > 0; round += 1) {
    await flush()
    clock.advance(5)
  }
  expect(running.size).toBe(0)
  expectQuiet(made)
  return awaits
}

describe.each(Object.entries(interrupts))('interrupting by %s', (_, interrupt) => {
  it('ADM-7 loses no permit and returns none twice, at whichever await it comes', async () => {
    const awaits = await play(-1, () => undefined)
    expect(awaits).toBeGreaterThan(calls.length * 2)
    for (let at = 0; at < awaits; at += 1) await play(at, interrupt)
  })
})
