import { expect } from 'vitest'
import type { Answer } from '../../src/admission/admit.ts'
import type { Lease } from '../../src/admission/lease.ts'
import { AdmissionCore, type AdmissionCoreOptions } from '../../src/admission-core.ts'
import type { Call } from '../../src/call.ts'
import type { ConfigInput } from '../../src/config/types.ts'
import { ManualClock } from '../../src/manual-clock.ts'
import type { Refusal } from '../../src/refusal.ts'

/** A call that a test made, and what has become of it so far. */
export interface Held {
  /** Was the answer given in the same step, without a promise? */
  readonly immediate: boolean
  readonly started: boolean
  readonly waiting: boolean
  readonly refusal: Refusal | undefined
  readonly lease: Lease
  release(): void
  abort(): void
}

export interface Setup {
  readonly core: AdmissionCore
  readonly clock: ManualClock
  hold(call?: Call): Held
  /** Lets promises settle; time stands still. */
  flush(): Promise<void>
}

/** A core on a manual clock. `hold()` makes a call that stays until it is released. */
export function setup(config?: ConfigInput, options: AdmissionCoreOptions = {}): Setup {
  const clock = new ManualClock()
  const core = new AdmissionCore({ ...options, config, clock })
  const flush = async (): Promise<void> => {
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve()
  }
  return { core, clock, hold: (call = {}) => holdCall(core, call), flush }
}

export function holdCall(core: AdmissionCore, call: Call): Held {
  const aborter = new AbortController()
  return watch(core.admit({ signal: aborter.signal, ...call }), aborter)
}

/** Follows an answer; its fields change when a waiter gets its answer, one microtask later. */
export function watch(answer: Answer, aborter: AbortController = new AbortController()): Held {
  let settled: Lease | Refusal | undefined
  if (answer instanceof Promise) void answer.then((late) => (settled = late))
  else settled = answer
  return {
    immediate: !(answer instanceof Promise),
    get started() {
      return settled?.kind === 'admitted'
    },
    get waiting() {
      return settled === undefined
    },
    get refusal() {
      return settled?.kind === 'refused' ? settled : undefined
    },
    get lease() {
      if (settled?.kind !== 'admitted') throw new Error(`No lease: ${JSON.stringify(settled ?? 'waiting')}`)
      return settled
    },
    release() {
      this.lease.release()
    },
    abort: () => aborter.abort(),
  }
}

/** Nothing runs, waits, ticks or is remembered of older generations: the last line of a test. */
export function expectQuiet({ core, clock }: Pick<Setup, 'core' | 'clock'>): void {
  const { active, queued, generations, scopes, partitions, state } = core.snapshot()
  expect({ active, queued }).toEqual({ active: 0, queued: { calls: 0, bytes: 0, oldestWaitMs: 0 } })
  for (const scope of [...scopes, ...partitions]) expect(scope).toMatchObject({ active: 0, waiting: 0 })
  if (state === 'stopped') expect(generations.length).toBeLessThanOrEqual(1)
  else expect(generations).toHaveLength(state === 'disabled' ? 0 : 1)
  expect(clock.pending).toBe(0)
}

/** Scope entry of the snapshot by name. */
export function scopeOf(core: AdmissionCore, name: string): { limit: number; active: number; waiting: number } {
  const scope = core.snapshot().scopes.find((entry) => entry.scope === name)
  if (scope === undefined) throw new Error(`No scope ${name}`)
  return { limit: scope.limit, active: scope.active, waiting: scope.waiting }
}

/** Calls with names, and the order in which they have started so far. */
export interface Lineup {
  readonly started: readonly string[]
  call(name: string, call?: Call): Held
}

export function lineup(core: AdmissionCore): Lineup {
  const started: string[] = []
  const note = (name: string, answer: Lease | Refusal): void => {
    if (answer.kind === 'admitted') started.push(name)
  }
  return {
    started,
    call(name, call = {}) {
      const answer = core.admit(call)
      if (answer instanceof Promise) void answer.then((late) => note(name, late))
      else note(name, answer)
      return watch(answer)
    },
  }
}

/** A promise that the test settles: the barrier at which a builder waits. */
export interface Barrier<T = void> {
  readonly promise: Promise<T>
  resolve(value: T): void
  reject(reason: unknown): void
}

export function barrier<T = void>(): Barrier<T> {
  let resolve: (value: T) => void = () => undefined
  let reject: (reason: unknown) => void = () => undefined
  const promise = new Promise<T>((accept, refuse) => {
    resolve = accept
    reject = refuse
  })
  return { promise, resolve, reject }
}

/** What a promise was rejected with; fails if it was not. */
export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => expect.unreachable('it should have been rejected'),
    (error: unknown) => error,
  )
}

/** The reason of a call that is refused on the spot. */
export function reasonOf(core: AdmissionCore, call: Call = {}): string | undefined {
  const held = watch(core.admit(call))
  if (held.started) held.release()
  return held.refusal?.reason
}
