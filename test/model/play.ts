import { expect } from 'vitest'
import type { Lease } from '../../src/admission/lease.ts'
import { AdmissionCore, type BoundRoute } from '../../src/admission-core.ts'
import type { Call } from '../../src/call.ts'
import type { Config } from '../../src/config/types.ts'
import { AdmissionConflictError, AdmissionStateError, UnsupportedTransitionError } from '../../src/errors.ts'
import { ManualClock } from '../../src/manual-clock.ts'
import type { Refusal } from '../../src/refusal.ts'
import { Model, type ModelCall } from './model.ts'
import type { Op } from './programs.ts'
import { expectedOf, isSupported, seenOf } from './view.ts'

/** A call as it really is, beside what the model makes of it. */
interface Played {
  readonly model: ModelCall
  readonly immediate: boolean
  readonly abortable: boolean
  readonly method: string | undefined
  readonly aborter: AbortController
  answer: Lease | Refusal | undefined
}

/** Plays one program on the core and on the model, and compares everything there is to see after each step. */
export class Play {
  readonly core: AdmissionCore
  readonly clock: ManualClock
  readonly model: Model
  readonly #calls: Map<ModelCall, Played> // in order of their ids
  readonly #routes: Map<string, BoundRoute>
  readonly #tracked: Lease[]
  #granted: ModelCall[] // waiters that were granted in this step, in order
  readonly #looks: boolean
  #clockMs: number
  #keys: { readonly [selector: string]: string | undefined }

  /** `looks`: is everything compared after each step, or only when a program says so? */
  constructor(looks: boolean) {
    this.#looks = looks
    this.clock = new ManualClock()
    const key = (name: string) => (): string | undefined => this.#keys[name]
    const selectors = { tenant: key('tenant'), user: key('user'), client: key('client') }
    this.core = new AdmissionCore({ clock: this.clock, selectors })
    this.model = new Model()
    this.#calls = new Map()
    this.#routes = new Map()
    this.#tracked = []
    this.#granted = []
    this.#clockMs = 0
    this.#keys = {}
  }

  async step(op: Op): Promise<void> {
    await this.#do(op)
    await this.compare(this.#looks || op.op === 'snapshot')
  }

  async #do(op: Op): Promise<void> {
    const { core, model } = this
    switch (op.op) {
      case 'admit':
        for (let time = 0; time < op.times; time += 1) this.#admit(op)
        return
      case 'advance':
        return this.#advance(op.ms, op.stepwise)
      case 'goBack':
        // The time so far has been seen, and nothing is due: what is due at an instant waits for a clock to show it.
        await this.#advance(0, false)
        core.snapshot()
        model.looked()
        this.clock.set(this.#clockMs - op.ms)
        this.#clockMs -= op.ms
        return
      case 'track':
        this.#tracked.push(core.track())
        model.tracked += 1
        model.totals.admitted += 1
        return
      case 'untrack': {
        const lease = this.#tracked.pop()
        lease?.release()
        lease?.release()
        model.tracked = this.#tracked.length
        return
      }
      case 'drain':
      case 'resume': {
        const write = (): void => (op.op === 'drain' ? core.drain(op) : core.resume())
        if (model.state === 'stopped') expect(write).toThrow(AdmissionStateError)
        else {
          write()
          if (op.op === 'drain') model.announce(op.announceMs)
          else model.resume()
        }
        return
      }
      case 'stop':
        void core.stop()
        return model.stop()
      case 'snapshot':
        return
      case 'plan':
        core.plan(op.config)
        return
      case 'enable':
        if (model.state !== 'disabled') expect(() => core.enable(op.config)).toThrow(AdmissionStateError)
        else {
          expect(core.enable(op.config).generation).toBe(model.generation + 1)
          model.publish(op.config)
        }
        return
      case 'disable':
        if (model.state !== 'enabled') expect(() => core.disable()).toThrow(AdmissionStateError)
        else {
          core.disable()
          model.disable()
        }
        return
      case 'update':
        return this.#update(op.config, op.how)
      case 'race':
        return this.#race(op.config, op.other, op.against)
      case 'releaseOf':
        return this.#release(model.running.find((call) => this.#calls.get(call)?.method === op.method))
      default:
        return this.#pick(op.op, op.pick)
    }
  }

  #admit(op: Op & { op: 'admit' }): void {
    const { contract, method, keys, oneWay, bytes, bodiless, signal: kind } = op
    const aborter = new AbortController()
    if (kind === 'aborted' || kind === 'lateAborted') aborter.abort()
    this.#keys = keys
    const call: Call = {
      oneWay,
      bytes,
      bodiless,
      ...(op.bound ? {} : { contract, method }),
      ...(kind === 'none'
        ? {}
        : { signal: kind === 'function' || kind === 'lateAborted' ? () => aborter.signal : aborter.signal }),
      ...(op.keyed === 'selectors' ? {} : { keys: op.keyed === 'record' ? keys : (name: string) => keys[name] }),
    }
    const aborted = kind === 'aborted' ? 'before' : kind === 'lateAborted' ? 'asked' : 'no'
    const model = this.model.admit(this.#calls.size, { contract, method, keys, oneWay, bytes, bodiless, aborted })
    const answer = op.bound ? this.#route(contract, method).admit(call) : this.core.admit(call)
    const played: Played = {
      model,
      immediate: !(answer instanceof Promise),
      abortable: kind !== 'none',
      method,
      aborter,
      answer: answer instanceof Promise ? undefined : answer,
    }
    this.#calls.set(model, played)
    if (answer instanceof Promise) {
      void answer.then((late) => {
        played.answer = late
        if (late.kind === 'admitted') this.#granted.push(model)
      })
    }
    expect(played.immediate, `call ${model.id} is answered at once`).toBe(model.expected !== undefined)
  }

  #route(contract: string | undefined, method: string | undefined): BoundRoute {
    const id = JSON.stringify([contract, method])
    const route = this.#routes.get(id) ?? this.core.route(contract, method)
    this.#routes.set(id, route)
    return route
  }

  async #advance(ms: number, stepwise: boolean): Promise<void> {
    const untilMs = this.#clockMs + ms
    this.model.turn()
    if (stepwise) {
      this.clock.advance(0)
      await this.compare()
    }
    for (let atMs = Math.floor(this.#clockMs) + 1; atMs <= untilMs; atMs += 1) {
      this.model.tick(atMs)
      this.model.turn()
      if (!stepwise) continue
      this.clock.advance(atMs - this.#clockMs)
      this.#clockMs = atMs
      await this.compare()
    }
    this.clock.advance(untilMs - this.#clockMs)
    this.#clockMs = untilMs
  }

  #pick(op: string, pick: number): void {
    const { running, waiters } = this.model
    const from =
      op === 'abort' ? waiters : op === 'releaseAgain' || op === 'abortAnswered' ? [...this.#calls.keys()] : running
    const call = from[op === 'releaseOldest' ? 0 : pick % Math.max(1, from.length)]
    const played = call === undefined ? undefined : this.#calls.get(call)
    if (call === undefined || played === undefined) return
    if (op === 'abort') {
      // Only a call that gave its signal can be aborted.
      played.aborter.abort()
      if (played.abortable) this.model.abort(call)
      return
    }
    const { answer } = played
    if (op === 'abortAnswered') {
      if (call.expected !== undefined) played.aborter.abort()
    } else if (op === 'releaseAgain') {
      if (answer?.kind !== 'admitted' || running.includes(call)) return
      answer.release()
      answer.releasePermits()
      answer[Symbol.dispose]()
    } else if (answer?.kind === 'admitted') {
      if (op === 'releasePermits') {
        answer.releasePermits()
        this.model.releasePermits(call)
      } else this.#release(call)
    }
  }

  #release(call: ModelCall | undefined): void {
    const answer = call === undefined ? undefined : this.#calls.get(call)?.answer
    if (call === undefined || answer?.kind !== 'admitted') return
    answer.release()
    this.model.release(call)
  }

  async #update(config: Config, how: 'plain' | 'builder' | 'async' | 'stale' | 'throws'): Promise<void> {
    const { core, model } = this
    const invalid = new Error('the builder has no idea')
    const update = (): Promise<unknown> => {
      if (how === 'stale') return core.update(config, { expectedGeneration: model.generation - 1 })
      if (how === 'plain') return core.update(config, { expectedGeneration: model.generation })
      if (how === 'builder') return core.update(() => config)
      return core.update(async () => {
        await Promise.resolve()
        if (how === 'throws') throw invalid
        return config
      })
    }
    if (model.state !== 'enabled' || model.current === null) {
      return expect(update()).rejects.toBeInstanceOf(AdmissionStateError)
    }
    if (how === 'stale') return expect(update()).rejects.toBeInstanceOf(AdmissionConflictError)
    if (how === 'throws') return expect(update()).rejects.toBe(invalid)
    if (!isSupported(model.current.config, config)) {
      return expect(update()).rejects.toBeInstanceOf(UnsupportedTransitionError)
    }
    const generation = model.generation + 1
    await expect(update()).resolves.toMatchObject({ generation })
    model.publish(config)
  }

  /** Two writers prepare from the same generation: whoever commits second is told, and changes nothing. */
  async #race(config: Config, other: Config, against: 'update' | 'disable' | 'reenable'): Promise<void> {
    const { core, model } = this
    if (model.current === null || model.state !== 'enabled') return
    if (!isSupported(model.current.config, config)) return
    let go = (): void => undefined
    const gate = new Promise<void>((resolve) => {
      go = resolve
    })
    const loser = core.update(async () => {
      await gate
      return config
    })
    const source = model.current
    if (against === 'update') await this.#update(other, 'plain')
    else {
      core.disable()
      model.disable()
      if (against === 'reenable') {
        core.enable(other)
        model.publish(other)
      }
    }
    const isLost = model.current !== source
    const before = core.snapshot()
    model.looked()
    go()
    if (!isLost) {
      await loser
      return model.publish(config)
    }
    await expect(loser).rejects.toBeInstanceOf(against === 'disable' ? AdmissionStateError : AdmissionConflictError)
    expect(core.snapshot()).toEqual(before)
  }

  /** Answers first: looking at the rest settles the queue, which must have happened already. */
  async compare(look: boolean = this.#looks): Promise<void> {
    const { model, clock } = this
    for (let turn = 0; turn < 3; turn += 1) await Promise.resolve()
    const waited = model.answered.filter((call) => this.#calls.get(call)?.immediate === false)
    const granted = waited.filter(({ expected }) => expected?.kind === 'admitted')
    if (granted.length > 0 || this.#granted.length > 0) expect(idsOf(this.#granted), 'grants').toEqual(idsOf(granted))
    for (const call of model.answered) this.#compareAnswer(call)
    for (const call of model.waiters) {
      if (this.#calls.get(call)?.answer !== undefined) expect.unreachable(`call ${call.id} should wait`)
    }
    this.#granted = []
    model.answered = []
    const own = model.announcedUntilMs < Number.POSITIVE_INFINITY ? 1 : 0
    const timers = clock.pending - own // one for deadlines and refills, one for the rest of a batch
    const isRight = model.waiters.length === 0 ? timers === 0 : timers === 1 || timers === 2
    if (!isRight) expect.unreachable(`${timers} timers for ${model.waiters.length} waiters`)
    if (look) this.#compareSnapshot()
  }

  #compareAnswer(call: ModelCall): void {
    const { id, expected } = call
    const answer = this.#calls.get(call)?.answer
    if (expected?.kind === 'refused' && answer?.kind === 'refused') {
      const { reason, scope, retryAfterMs } = answer
      const isScope = expected.scopes.length === 0 ? scope === undefined : expected.scopes.includes(scope ?? '')
      if (isScope && reason === expected.reason && retryAfterMs === expected.retryAfterMs) return
    } else if (expected?.kind === 'admitted' && answer?.kind === 'admitted') {
      const isSame = answer.generation === expected.generation && answer.waitedMs === expected.waitedMs
      const needs = call.needs.filter(({ reason }) => reason !== 'delivery')
      const scopes = [...new Set(needs.map(({ scope }) => scope))]
      if (isSame && `${answer.scopes}` === `${scopes}`) return
    }
    expect(shown(answer), `call ${id}`).toEqual(expected)
    expect.unreachable(`call ${id} names the scope of ${JSON.stringify(answer)}`)
  }

  #compareSnapshot(): void {
    const { core, model } = this
    const snapshot = core.snapshot()
    model.looked()
    const [seen, expected] = [seenOf(snapshot), expectedOf(model)]
    // Asking `expect` each time would take most of the run.
    if (JSON.stringify(seen) !== JSON.stringify(expected)) expect(seen).toEqual(expected)
    for (const { scope, partitions, maxPartitions } of snapshot.partitions) {
      if (partitions > maxPartitions) expect.unreachable(`${partitions} partitions in ${scope}`)
    }
  }
}

function shown(answer: Lease | Refusal | undefined): unknown {
  if (answer?.kind !== 'admitted') return answer
  const { kind, generation, waitedMs } = answer
  return { kind, generation, waitedMs }
}

function idsOf(calls: readonly ModelCall[]): number[] {
  return calls.map(({ id }) => id)
}
