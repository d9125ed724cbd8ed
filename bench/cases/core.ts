import { AdmissionCore } from '../../src/admission-core.ts'
import type { ConfigInput, QueueInput } from '../../src/config/types.ts'
import type { Contestant, Exact, Group, Ratio, Size, Subject } from '../engine.ts'
import { StillClock } from '../still-clock.ts'
import { admitted, immediate, rotatingLeases } from './leases.ts'
import { AMPLE, AMPLE_BUCKET, CONTRACT, METHOD, ONE_SCOPE, OUTSTANDING, THREE_SCOPES, threeScopes } from './limits.ts'

const LEASE: Exact = { maxBytes: 40, clockReads: 0, maxTimersPer1000: 0 }
const NOTHING: Exact = { maxBytes: 0, clockReads: 0, maxTimersPer1000: 0 }

/** The unit C: a count goes up and down with 64 objects outstanding, and nothing is decided. */
export const counter: Contestant = {
  name: 'unit.counter',
  make() {
    const state = { active: OUTSTANDING }
    const ring: { active: number }[] = Array.from({ length: OUTSTANDING }, () => state)
    let at = 0
    return {
      exact: { maxBytes: 0 },
      run(n) {
        let count = 0
        for (let left = n; left > 0; left -= 1) {
          const oldest = ring[at]
          if (oldest !== undefined) oldest.active -= 1
          state.active += 1
          ring[at] = state
          at = (at + 1) & (OUTSTANDING - 1)
          count += 1
        }
        return count + state.active
      },
      expected: (n) => n + OUTSTANDING,
    }
  },
}

function disabled(): Subject {
  const clock = new StillClock()
  const core = new AdmissionCore({ clock })
  return rotatingLeases(core, core.route(CONTRACT, METHOD), clock, NOTHING)
}

/** Admission that was once enabled, and is off again. */
function disabledAgain(): Subject {
  const clock = new StillClock()
  const core = new AdmissionCore({ clock, config: THREE_SCOPES })
  core.disable()
  return rotatingLeases(core, core.route(CONTRACT, METHOD), clock, NOTHING)
}

/** By contract and method instead of a bound route: two look-ups more. */
function unbound(): Subject {
  const clock = new StillClock()
  const core = new AdmissionCore({ clock, config: THREE_SCOPES })
  const call = { contract: CONTRACT, method: METHOD }
  return rotatingLeases(core, { admit: () => core.admit(call) }, clock, LEASE)
}

function enabledLater(): Subject {
  const clock = new StillClock()
  const core = new AdmissionCore({ clock })
  const bound = core.route(CONTRACT, METHOD)
  admitted(bound.admit()).release()
  core.enable(THREE_SCOPES)
  return rotatingLeases(core, bound, clock, LEASE)
}

/** After as many updates, each followed by a call. */
async function updated(size: Size, config: (update: number) => ConfigInput): Promise<Subject> {
  const clock = new StillClock()
  const core = new AdmissionCore({ clock })
  const bound = core.route(CONTRACT, METHOD)
  core.enable(THREE_SCOPES)
  const updates = size === 'full' ? 10_000 : 100
  for (let update = 0; update < updates; update += 1) {
    await core.update(config(update))
    admitted(bound.admit()).release()
  }
  await core.update(THREE_SCOPES)
  return rotatingLeases(core, bound, clock, LEASE)
}

/** Limits up and down. */
const resized = (update: number): ConfigInput => threeScopes(100 + ((update * 37) % 900))

/** Depth, delay, one-way calls, and the queue on and off. */
const requeued = (update: number): ConfigInput => {
  const queue: QueueInput = {
    maxQueuedCalls: 1 + ((update * 7) % 500),
    maxQueueDelayMs: 1 + ((update * 13) % 5000),
    queueOneWayCalls: update % 2 === 0,
  }
  return update % 3 === 0 ? THREE_SCOPES : { ...THREE_SCOPES, queue }
}

const both = (update: number): ConfigInput => ({ ...requeued(update), ...resized(update) })

/** A bucket that is full again after every sample. */
function withRate(): Subject {
  const clock = new StillClock()
  const core = new AdmissionCore({
    clock,
    config: { ...THREE_SCOPES, global: { concurrency: AMPLE, rate: AMPLE_BUCKET } },
  })
  const subject = rotatingLeases(core, core.route(CONTRACT, METHOD), clock, { clockReads: 1, maxTimersPer1000: 0 })
  let nowMs = 0
  return {
    ...subject,
    run(n) {
      nowMs += 1
      clock.set(nowMs)
      return subject.run(n)
    },
  }
}

/** The same, on the host's clock. */
function withRealClock(): Subject {
  const core = new AdmissionCore({ config: { ...THREE_SCOPES, global: { concurrency: AMPLE, rate: AMPLE_BUCKET } } })
  return rotatingLeases(core, core.route(CONTRACT, METHOD), new StillClock(), {})
}

/** Refusals, one after the other; nothing is ever admitted. */
function refusing(config: ConfigInput, prepare: (core: AdmissionCore) => void, exact: Exact): Subject {
  const clock = new StillClock()
  const core = new AdmissionCore({ clock, config })
  prepare(core)
  const bound = core.route(CONTRACT, METHOD)
  return {
    clock,
    exact,
    run(n) {
      let count = 0
      for (let left = n; left > 0; left -= 1) {
        const answer = bound.admit()
        if (answer instanceof Promise || answer.kind === 'admitted') throw new Error('Not refused')
        if (answer.reason !== 'aborted') count += 1
      }
      return count
    },
    expected: (n) => n,
  }
}

const full = (): Subject => {
  const method = { concurrency: 0 }
  const contract = { concurrency: AMPLE, methods: { [METHOD]: method } }
  return refusing({ global: { concurrency: AMPLE }, contracts: { [CONTRACT]: contract } }, () => {}, NOTHING)
}

/** The method is closed, and the one place in the queue is taken. */
const queueFull = (): Subject => {
  const methods = { [METHOD]: { concurrency: 0 } }
  const contracts = { [CONTRACT]: { concurrency: AMPLE, methods } }
  const queue = { maxQueuedCalls: 1, maxQueueDelayMs: 1_000_000 }
  const join = (core: AdmissionCore): void => void core.admit({ contract: CONTRACT, method: METHOD })
  return refusing({ queue, global: { concurrency: AMPLE }, contracts }, join, {
    clockReads: 1,
    maxTimersPer1000: 0,
  })
}

const rateEmpty = (): Subject => {
  const rate = {
    algorithm: 'token-bucket',
    tokenLimit: 1,
    tokensPerPeriod: 1,
    replenishmentPeriodMs: 86_400_000,
  } as const
  const take = (core: AdmissionCore): void => void core.admit()
  return refusing({ ...THREE_SCOPES, global: { concurrency: AMPLE, rate } }, take, {
    clockReads: 1,
    maxTimersPer1000: 0,
  })
}

/** A case beside its yardstick, in a process of its own: another case would share the code that is compiled for it. */
function beside(yardstick: Contestant, name: string, make: Contestant['make'], goal: Partial<Ratio> = {}): Group {
  return { name, contestants: () => [yardstick, { name, make }], ratios: [{ of: name, to: [yardstick.name], ...goal }] }
}

const threeScopesAtOnce: Contestant = { name: 'core.immediate.3', make: () => immediate(THREE_SCOPES, LEASE) }

export const coreGroups: readonly Group[] = [
  beside(counter, 'core.disabled', disabled, { goal: 'P1', max: 1.5 }),
  beside(counter, 'core.disabled.again', disabledAgain, { goal: 'P1', max: 1.5 }),
  beside(counter, 'core.immediate.1', () => immediate(ONE_SCOPE, LEASE), { goal: 'P2', max: 6 }),
  beside(counter, threeScopesAtOnce.name, threeScopesAtOnce.make, { goal: 'P3', max: 8 }),
  beside(counter, 'core.immediate.3.unbound', unbound),
  beside(threeScopesAtOnce, 'core.rate', withRate, { goal: 'P6', max: 2 }),
  beside(threeScopesAtOnce, 'core.rate.real-clock', withRealClock),
  beside(counter, 'core.refuse.full', full, { goal: 'P8', max: 4 }),
  beside(counter, 'core.refuse.queue-full', queueFull),
  beside(counter, 'core.refuse.rate', rateEmpty, { goal: 'P8', max: 8 }),
]

export const updatedGroup: Group = {
  name: 'core.immediate.updated',
  contestants: (size) => [
    { name: 'core.immediate.built-in', make: () => immediate(THREE_SCOPES, LEASE) },
    { name: 'core.immediate.runtime', make: enabledLater },
    { name: 'core.immediate.resized', make: () => updated(size, resized) },
    { name: 'core.immediate.policy', make: () => updated(size, requeued) },
    { name: 'core.immediate.both', make: () => updated(size, both) },
  ],
  ratios: [
    { of: 'core.immediate.runtime', to: ['core.immediate.built-in'], goal: 'P4', max: 1.1 },
    { of: 'core.immediate.resized', to: ['core.immediate.runtime'], goal: 'P5', max: 1.2 },
    { of: 'core.immediate.policy', to: ['core.immediate.runtime'], goal: 'P5', max: 1.2 },
    { of: 'core.immediate.both', to: ['core.immediate.runtime'], goal: 'P5', max: 1.2 },
  ],
}
