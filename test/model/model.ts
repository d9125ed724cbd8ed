import type { Config, QueueConfig, ScopeConfig } from '../../src/config/types.ts'
import type { RefusalReason } from '../../src/refusal.ts'
import { noTotals, type Totals } from '../../src/totals.ts'
import { type Entry, type Need, Permits, type Place, Places, Pool, RateNeed } from './model-state.ts'

export const MAX_STARTS = 256
export const MAX_PASSES = 64

/** What a call may be answered with; `scopes` are those of which any is right (none: the answer names no scope). */
export type Expected =
  | { readonly kind: 'admitted'; readonly generation: number; readonly waitedMs: number }
  | {
      readonly kind: 'refused'
      readonly reason: RefusalReason
      readonly scopes: readonly string[]
      readonly retryAfterMs: number | undefined
    }

export interface ModelProgram {
  readonly generation: number
  readonly config: Config
  active: number
  queued: number
}

export interface ModelInput {
  readonly contract: string | undefined
  readonly method: string | undefined
  readonly oneWay: boolean
  readonly bodiless: boolean
  readonly bytes: number | 'unknown'
  readonly keys: { readonly [selector: string]: string | undefined }
  /** Was its signal aborted before the call, and is that seen at once or only when the call would queue (RUN-2)? */
  readonly aborted: 'no' | 'before' | 'asked'
}

/** A call and what it needs, in the order in which reasons are judged. */
export interface ModelCall {
  readonly id: number
  readonly program: ModelProgram | null // null: admission was disabled
  readonly needs: Need[]
  readonly entries: Entry[]
  place: Place | undefined
  bytes: number
  arrivedAtMs: number
  deadlineAtMs: number
  passes: number
  /** What it has seen without room since it arrived. */
  readonly lacked: Set<Need>
  expected: Expected | undefined // undefined: it waits
  holdsPermits: boolean
}

/**
 * The specification, played naively: waiters are a list in arrival order, scanned from the oldest after every event;
 * counters are counters; rates are walked through millisecond by millisecond.
 */
export class Model {
  nowMs: number // the highest time seen (RAT-4)
  state: 'disabled' | 'enabled' | 'stopped'
  drain: 'open' | 'announcing' | 'sealed'
  announcedUntilMs: number
  current: ModelProgram | null
  generation: number
  retired: ModelProgram[]
  waiters: ModelCall[]
  running: ModelCall[]
  tracked: number
  /** Whom permits are kept for (ADM-6). */
  protected: ModelCall | undefined
  /** More waiters fit than one turn may start (QUE-11). */
  backlog: boolean
  readonly totals: Totals
  readonly permits: Map<string, Permits>
  readonly rates: Map<string, RateNeed>
  readonly pools: Map<string, Pool>
  readonly places: Map<string, Places>
  /** Calls answered since the last look, in order. */
  answered: ModelCall[]
  /** How often protection began and batches were cut: that the programs reach these corners is checked. */
  readonly seen: { protections: number; batches: number }

  constructor() {
    this.nowMs = 0
    this.state = 'disabled'
    this.drain = 'open'
    this.announcedUntilMs = Number.POSITIVE_INFINITY
    this.current = null
    this.generation = 0
    this.retired = []
    this.waiters = []
    this.running = []
    this.tracked = 0
    this.protected = undefined
    this.backlog = false
    this.totals = noTotals()
    this.permits = new Map()
    this.rates = new Map()
    this.pools = new Map()
    this.places = new Map()
    this.answered = []
    this.seen = { protections: 0, batches: 0 }
  }

  admit(id: number, input: ModelInput): ModelCall {
    const program = this.state === 'enabled' ? this.current : null
    const call: ModelCall = {
      id,
      program,
      needs: [],
      entries: [],
      place: undefined,
      bytes: 0,
      arrivedAtMs: this.nowMs,
      deadlineAtMs: Number.POSITIVE_INFINITY,
      passes: 0,
      lacked: new Set(),
      expected: undefined,
      holdsPermits: false,
    }
    if (this.state === 'stopped') return this.#refuse(call, 'stopped')
    if (this.drain === 'sealed') return this.#refuse(call, 'draining')
    if (input.aborted === 'before') return this.#refuse(call, 'aborted')
    if (program === null) return this.#admitted(call)
    return this.#judge(call, program, input)
  }

  #judge(call: ModelCall, program: ModelProgram, input: ModelInput): ModelCall {
    const { config } = program
    const policy = queues(config.queue) ? config.queue : undefined
    const { contract: contractId, method: methodId } = input
    const contract = contractId === undefined ? undefined : own(config.contracts, contractId)
    const method = contract === undefined || methodId === undefined ? undefined : own(contract.methods, methodId)
    const delivery = input.bodiless ? undefined : (method?.delivery ?? contract?.delivery)
    if (delivery !== undefined) {
      const scope = method?.delivery === undefined ? `contract:${contractId}` : `method:${contractId} ${methodId}`
      const key = input.keys[delivery.key]
      const place = key === undefined ? undefined : this.places.get(`${scope}#${delivery.key}`)?.find(key)
      if (place !== undefined) {
        if (!place.hasRoom(this.nowMs, this.#aheadOfNewcomer(place))) return this.#refuse(call, 'delivery', [scope])
        call.place = place
        call.needs.push(place)
      }
    }
    const levels: [string, ScopeConfig | undefined][] = [
      ['global', config.global],
      [`contract:${contractId}`, contract],
      [`method:${contractId} ${methodId}`, method],
    ]
    let lacking: Need | undefined
    const need = (...needs: Need[]): void => {
      for (const each of needs) {
        call.needs.push(each)
        if (!each.hasRoom(this.nowMs, this.#aheadOfNewcomer(each))) lacking ??= each
      }
    }
    for (const [scope, limits] of levels) {
      if (limits?.concurrency !== undefined) need(found(this.permits.get(scope)))
      if (limits?.rate !== undefined) need(found(this.rates.get(`${scope} ${JSON.stringify(limits.rate)}`)))
      for (const [selector, partition] of Object.entries(limits?.partitions ?? {})) {
        if (policy === undefined && lacking !== undefined) break
        const key = input.keys[selector]
        if (key === undefined) continue
        const pool = found(this.pools.get(`${scope}#${selector} ${JSON.stringify(partition)}`))
        if (!pool.canHold(key, this.nowMs)) return this.#refuse(call, 'partition_limit', [pool.scope])
        const entry = pool.find(key, this.nowMs)
        call.entries.push(entry)
        need(...entry.needs)
      }
      if (policy === undefined && lacking !== undefined) break
    }
    // While a batch is cut, who can wait does so behind whoever shares a need (QUE-11).
    const behind =
      lacking ?? (this.backlog && policy !== undefined ? call.needs.find((each) => this.#waiting(each) > 0) : undefined)
    if (behind === undefined) return this.#start(call)
    const waitMs = (each: Need): number => each.msUntilRoom(this.nowMs, this.#waiting(each))
    if (policy === undefined) {
      return this.#refuse(call, behind.reason, [behind.scope], behind.timed ? waitMs(behind) : undefined)
    }
    const turnAway = (reason: RefusalReason): ModelCall =>
      lacking === undefined ? this.#start(call) : this.#refuse(call, reason, [lacking.scope])
    if (input.oneWay && !policy.queueOneWayCalls) return turnAway('one_way')
    const tooLate = call.needs.find((each) => each.timed && waitMs(each) >= policy.maxQueueDelayMs)
    if (tooLate !== undefined) return this.#refuse(call, tooLate.reason, [tooLate.scope], waitMs(tooLate))
    if (this.waiters.length >= policy.maxQueuedCalls) return turnAway('queue_calls')
    call.bytes = input.bytes === 'unknown' ? policy.unknownBodyBytes : input.bytes
    if (call.bytes > 0 && this.queuedBytes + call.bytes > policy.maxQueuedBytes) return turnAway('queue_bytes')
    if (input.aborted === 'asked') return this.#refuse(call, 'aborted')
    call.deadlineAtMs = this.nowMs + policy.maxQueueDelayMs
    for (const entry of call.entries) entry.pool.enter(entry, this.nowMs)
    program.queued += 1
    this.totals.queued += 1
    this.waiters.push(call)
    this.#noteFull()
    return call
  }

  get queuedBytes(): number {
    return this.waiters.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Admitted without waiting. */
  #start(call: ModelCall): ModelCall {
    for (const entry of call.entries) entry.pool.enter(entry, this.nowMs)
    this.#take(call, this.#passedBy(call, this.waiters))
    this.#scan()
    return call
  }

  #take(call: ModelCall, passed: readonly ModelCall[]): void {
    for (const need of call.needs) need.take(this.nowMs)
    if (call.program !== null) call.program.active += 1
    call.holdsPermits = true
    this.running.push(call)
    for (const waiter of passed) waiter.passes += 1
    this.#noteFull()
    this.#protect()
    this.#admitted(call)
  }

  /** A scope that the waiter lacked had room, which goes to a newer call because the waiter still lacks another. */
  #passedBy({ needs }: ModelCall, older: readonly ModelCall[]): ModelCall[] {
    return older.filter((waiter) =>
      needs.some(
        (need) => waiter.lacked.has(need) && waiter.needs.some((other) => other !== need && this.#lacks(waiter, other)),
      ),
    )
  }

  #lacks(waiter: ModelCall, need: Need): boolean {
    const kept = waiter !== this.protected && this.protected?.needs.includes(need) === true ? 1 : 0
    return !need.hasRoom(this.nowMs, kept)
  }

  /** What a newcomer must leave to waiters: all that need it while a batch is cut, else what is kept. */
  #aheadOfNewcomer(need: Need): number {
    if (this.backlog) return this.#waiting(need)
    return this.protected?.needs.includes(need) === true ? 1 : 0
  }

  #waiting(need: Need): number {
    return this.waiters.filter((waiter) => waiter.needs.includes(need)).length
  }

  #noteFull(): void {
    for (const { needs, lacked } of this.waiters) {
      for (const need of needs) if (!lacked.has(need) && !need.hasRoom(this.nowMs, 0)) lacked.add(need)
    }
  }

  #protect(): void {
    const oldest = this.waiters.find(({ passes }) => passes >= MAX_PASSES)
    if (oldest !== undefined && oldest !== this.protected) this.seen.protections += 1
    this.protected = oldest
  }

  /** Starts whoever fits, the oldest first, at most a batch (QUE-11). */
  #scan(): void {
    if (this.backlog) return
    for (let started = 0; ; started += 1) {
      const next = this.waiters.find((waiter) => !waiter.needs.some((need) => this.#lacks(waiter, need)))
      if (next === undefined) return
      if (started === MAX_STARTS) {
        this.backlog = true
        this.seen.batches += 1
        return
      }
      for (const entry of next.entries) entry.usedAtMs = this.nowMs
      // What is kept for it still is, when the others are looked at.
      const passed = this.#passedBy(next, this.waiters.slice(0, this.waiters.indexOf(next)))
      this.#leave(next)
      this.#take(next, passed)
    }
  }

  #leave(waiter: ModelCall): void {
    this.waiters = this.waiters.filter((other) => other !== waiter)
    if (waiter.program !== null) waiter.program.queued -= 1
    this.#protect()
    if (this.waiters.length === 0) this.backlog = false
  }

  #admitted(call: ModelCall): ModelCall {
    this.totals.admitted += 1
    const generation = call.program?.generation ?? this.generation
    call.expected = { kind: 'admitted', generation, waitedMs: this.nowMs - call.arrivedAtMs }
    this.answered.push(call)
    return call
  }

  #refuse(call: ModelCall, reason: RefusalReason, scopes: readonly string[] = [], retryAfterMs?: number): ModelCall {
    this.totals.refused[reason] += 1
    call.expected = { kind: 'refused', reason, scopes, retryAfterMs }
    this.answered.push(call)
    return call
  }

  #refuseWaiter(waiter: ModelCall, reason: RefusalReason, scopes: readonly string[] = []): void {
    this.#leave(waiter)
    for (const entry of waiter.entries) entry.users -= 1
    this.#refuse(waiter, reason, scopes)
    this.#ended(waiter.program)
  }

  abort(waiter: ModelCall): void {
    this.#refuseWaiter(waiter, 'aborted')
    this.#scan()
  }

  releasePermits(call: ModelCall): void {
    if (!call.holdsPermits) return
    call.holdsPermits = false
    for (const need of call.needs) if (need !== call.place) need.giveBack()
    for (const entry of call.entries) entry.users -= 1
    if (call.program !== null) call.program.active -= 1
    this.#scan()
    this.#ended(call.program)
  }

  release(call: ModelCall): void {
    this.releasePermits(call)
    call.place?.giveBack()
    call.place = undefined
    this.running = this.running.filter((other) => other !== call)
    this.#scan()
  }

  /** A later turn of the event loop: what is left of a batch goes on. */
  turn(): void {
    while (this.backlog) {
      this.backlog = false
      this.#scan()
    }
  }

  /** The clock shows a whole millisecond. */
  tick(clockMs: number): void {
    this.nowMs = Math.max(this.nowMs, clockMs)
    if (clockMs >= this.announcedUntilMs) this.seal()
    for (const waiter of this.waiters.filter(({ deadlineAtMs }) => deadlineAtMs <= this.nowMs)) {
      this.#refuseWaiter(waiter, 'queue_timeout', this.#scopesLacking(waiter))
    }
    this.#scan()
  }

  /** Any scope that it lacks, or lacked just before; while a batch is cut it may be any at all. */
  #scopesLacking(waiter: ModelCall): string[] {
    const lacking = waiter.needs.filter((need) => this.backlog || need.timed || this.#lacks(waiter, need))
    return lacking.map(({ scope }) => scope)
  }

  seal(): void {
    this.drain = 'sealed'
    this.announcedUntilMs = Number.POSITIVE_INFINITY
  }

  announce(announceMs: number): void {
    if (this.drain === 'sealed') return
    this.drain = 'announcing'
    this.announcedUntilMs = Math.min(this.announcedUntilMs, this.nowMs + announceMs)
    if (announceMs === 0) this.seal()
  }

  resume(): void {
    this.drain = 'open'
    this.announcedUntilMs = Number.POSITIVE_INFINITY
  }

  stop(): void {
    this.state = 'stopped'
    if (this.drain === 'announcing') this.drain = 'sealed'
    this.announcedUntilMs = Number.POSITIVE_INFINITY
    for (const waiter of this.waiters) this.#refuseWaiter(waiter, 'stopped')
  }

  /** Enables with, or updates to, a complete configuration. */
  publish(config: Config): void {
    for (const state of [...this.permits.values(), ...this.rates.values(), ...this.pools.values()]) state.named = false
    for (const [scope, selector, limits] of scopesOf(config)) {
      this.#name(scope, limits)
      if (selector === undefined) continue
      const id = `${scope}#${selector.key}`
      const places = this.places.get(id) ?? new Places(scope, selector.key, selector.maxOpenBodies)
      places.maxOpenBodies = selector.maxOpenBodies
      this.places.set(id, places)
    }
    if (this.current !== null) this.#retire(this.current)
    this.generation += 1
    this.current = { generation: this.generation, config, active: 0, queued: 0 }
    this.state = 'enabled'
    this.#noteFull()
    this.#scan()
    this.purge()
  }

  #name(scope: string, { concurrency, rate, partitions = {} }: ScopeConfig): void {
    if (concurrency !== undefined) {
      const permits = this.permits.get(scope) ?? new Permits(scope, 'concurrency', concurrency)
      permits.limit = concurrency
      permits.named = true
      this.permits.set(scope, permits)
    }
    if (rate !== undefined) {
      const id = `${scope} ${JSON.stringify(rate)}`
      const need = this.rates.get(id) ?? new RateNeed(scope, 'rate', rate, 0)
      need.named = true
      this.rates.set(id, need)
    }
    for (const [selector, partition] of Object.entries(partitions)) {
      const id = `${scope}#${selector} ${JSON.stringify(partition)}`
      const pool = this.pools.get(id) ?? new Pool(`${scope}#${selector}`, selector, partition)
      pool.named = true
      this.pools.set(id, pool)
    }
  }

  disable(): void {
    if (this.current !== null) this.#retire(this.current)
    this.current = null
    this.state = 'disabled'
    for (const state of [...this.permits.values(), ...this.rates.values(), ...this.pools.values()]) state.named = false
    this.purge()
  }

  #retire(program: ModelProgram): void {
    if (program.active > 0 || program.queued > 0) this.retired.push(program)
  }

  #ended(program: ModelProgram | null): void {
    if (program === null || program.active > 0 || program.queued > 0 || !this.retired.includes(program)) return
    this.retired = this.retired.filter((other) => other !== program)
    this.purge()
  }

  /** A snapshot is taken: idle keys go, too (PAR-1). */
  looked(): void {
    this.purge()
    for (const pool of this.pools.values()) pool.forget(this.nowMs - pool.config.idleTimeoutMs)
  }

  /** Forgets what no program names, nobody uses, and a new one would behave like (STA-3, RAT-4). */
  purge(): void {
    for (const [id, permits] of this.permits) {
      if (!permits.named && permits.active === 0 && this.#waiting(permits) === 0) this.permits.delete(id)
    }
    for (const [id, need] of this.rates) {
      if (!need.named && this.#waiting(need) === 0 && need.rate.cleanAtMs() <= this.nowMs) this.rates.delete(id)
    }
    for (const [id, pool] of this.pools) {
      if (pool.named) continue
      pool.forget(this.nowMs)
      if (pool.entries.size === 0) this.pools.delete(id)
    }
  }
}

function queues(queue: QueueConfig | undefined): queue is QueueConfig {
  return queue !== undefined && queue.maxQueuedCalls > 0 && queue.maxQueuedBytes > 0 && queue.maxQueueDelayMs > 0
}

function own<T>(record: { readonly [id: string]: T } | undefined, id: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, id) ? record[id] : undefined
}

function found<T>(state: T | undefined): T {
  if (state === undefined) throw new Error('The model has lost a state')
  return state
}

type Bodies = { readonly key: string; readonly maxOpenBodies: number }

/** Every scope of a configuration with what it limits. */
function* scopesOf(config: Config): Iterable<[string, Bodies | undefined, ScopeConfig]> {
  yield ['global', undefined, config.global ?? {}]
  for (const [id, contract] of Object.entries(config.contracts ?? {})) {
    yield [`contract:${id}`, contract.delivery, contract]
    for (const [name, method] of Object.entries(contract.methods ?? {})) {
      yield [`method:${id} ${name}`, method.delivery, method]
    }
  }
}
