import { partitionKey, rateKey } from '../config/definition-key.ts'
import type { DeliveryConfig, PartitionConfig, RateConfig } from '../config/types.ts'
import { Concurrency, UNLIMITED } from './concurrency.ts'
import { DeliveryPlaces } from './delivery.ts'
import { PartitionPool } from './partitions.ts'
import { QueueLedger } from './queue-ledger.ts'
import { Scope } from './scope.ts'
import { ScopeMap } from './scope-map.ts'
import { ScopedRate } from './scoped-rate.ts'

type State = Concurrency | ScopedRate | PartitionPool | DeliveryPlaces

/** Whose concurrency it is. */
export interface ScopeIds {
  readonly contract: string | undefined
  readonly method: string | undefined
}

/** What a candidate no longer names: concurrency by scope, the others by the ids of their states. */
export interface Removed {
  readonly concurrencies: readonly ScopeIds[]
  readonly deliveries: readonly string[]
}

/**
 * The mutable state that outlives programs, found by what it is for: concurrency by scope alone, rates by scope and
 * definition, partition pools by scope, selector and definition, open bodies by scope and selector (STA-1). No queue setting is part of any key.
 *
 * A state is `named` while the current program uses it. One that no longer is stays until nobody holds or awaits a
 * permit of it (STA-3) and a new one would behave the same (RAT-4); if it is named again before that, it is the same.
 * Calls never look anything up here: scopes are bound to their states when a program is compiled (ADM-2).
 */
export class Kernel {
  readonly ledger: QueueLedger
  /** Stands in for every concurrency that a route does not have. */
  readonly unlimited: Concurrency
  readonly #concurrencies: ScopeMap<Concurrency>
  readonly #rates: Map<string, ScopedRate>
  readonly #pools: Map<string, PartitionPool>
  readonly #deliveries: Map<string, DeliveryPlaces>
  readonly #unnamed: Map<State, () => void> // and how each is removed from its map

  constructor() {
    this.ledger = new QueueLedger()
    this.unlimited = new Concurrency(new Scope(), UNLIMITED)
    this.#concurrencies = new ScopeMap()
    this.#rates = new Map()
    this.#pools = new Map()
    this.#deliveries = new Map()
    this.#unnamed = new Map()
  }

  concurrencies(): Iterable<Concurrency> {
    return this.#concurrencies.values()
  }

  rates(): Iterable<ScopedRate> {
    return this.#rates.values()
  }

  pools(): Iterable<PartitionPool> {
    return this.#pools.values()
  }

  deliveries(): Iterable<DeliveryPlaces> {
    return this.#deliveries.values()
  }

  /** States held in all, named or not: what repeated updates must not grow (PUB-7). */
  get size(): number {
    return this.#concurrencies.size + this.#rates.size + this.#pools.size + this.#deliveries.size
  }

  concurrency(contract: string | undefined, method: string | undefined): Concurrency | undefined {
    return this.#concurrencies.get(contract, method)
  }

  rate(stateId: string): ScopedRate | undefined {
    return this.#rates.get(stateId)
  }

  pool(stateId: string): PartitionPool | undefined {
    return this.#pools.get(stateId)
  }

  delivery(stateId: string): DeliveryPlaces | undefined {
    return this.#deliveries.get(stateId)
  }

  /** Applies what a candidate staged, and unnames what it removes. Synchronous, cannot fail. */
  commit(staging: Staging, removed?: Removed): void {
    for (const state of staging.concurrencies) {
      this.#concurrencies.set(state.scope.contract, state.scope.method, state)
      this.#name(state)
    }
    for (const { id, state } of staging.rates) {
      this.#rates.set(id, state)
      this.#name(state)
    }
    for (const { id, state } of staging.pools) {
      this.#pools.set(id, state)
      this.#name(state)
    }
    for (const { id, state } of staging.deliveries) {
      this.#deliveries.set(id, state)
      this.#name(state)
    }
    for (const { state, limit } of staging.limits) state.limit = limit
    for (const { state, maxOpenBodies } of staging.openBodies) state.maxOpenBodies = maxOpenBodies
    for (const { contract, method } of removed?.concurrencies ?? []) this.#unnameConcurrency(contract, method)
    for (const id of removed?.deliveries ?? []) this.#unname(this.#deliveries, id)
  }

  /** No program is current any more: nothing is named. */
  unnameAll(): void {
    for (const { scope } of this.#concurrencies.values()) this.#unnameConcurrency(scope.contract, scope.method)
    for (const id of this.#rates.keys()) this.#unname(this.#rates, id)
    for (const id of this.#pools.keys()) this.#unname(this.#pools, id)
    for (const id of this.#deliveries.keys()) this.#unname(this.#deliveries, id)
  }

  get hasUnnamed(): boolean {
    return this.#unnamed.size > 0
  }

  /** Drops unnamed states that nobody uses and that a new one would behave like. Cost: the unnamed ones only. */
  purge(nowMs: number): void {
    for (const [state, remove] of this.#unnamed) {
      if (!isSpent(state, nowMs)) continue
      this.#unnamed.delete(state)
      remove()
    }
  }

  #name(state: State): void {
    state.named = true
    this.#unnamed.delete(state)
  }

  #unnameConcurrency(contract: string | undefined, method: string | undefined): void {
    const state = this.#concurrencies.get(contract, method)
    if (state === undefined) return
    state.named = false
    // As a rule nobody uses it: then there is nothing to come back to, and no need to remember it for `purge`.
    if (isUnused(state)) this.#concurrencies.delete(contract, method)
    else this.#unnamed.set(state, () => this.#concurrencies.delete(contract, method))
  }

  #unname<S extends State>(states: Map<string, S>, id: string): void {
    const state = states.get(id)
    if (state === undefined) return
    state.named = false
    this.#unnamed.set(state, () => states.delete(id))
  }
}

function isUnused({ active, waiting }: Concurrency): boolean {
  return active === 0 && waiting === 0
}

function isSpent(state: State, nowMs: number): boolean {
  if (state instanceof Concurrency) return isUnused(state)
  if (state instanceof ScopedRate) return state.waiting === 0 && state.rate.cleanAtMs() <= nowMs
  if (state instanceof PartitionPool) state.shed(nowMs)
  return state.size === 0
}

interface Staged<S extends State> {
  readonly id: string
  readonly state: S
}

/**
 * What one candidate would change in the kernel, kept apart until it is committed: a candidate that loses is simply
 * dropped and has left no trace (PUB-5). A candidate asks once for each state of a scope that it does not share with the
 * current program.
 */
export class Staging {
  readonly #kernel: Kernel
  /** States that the candidate names and the current program does not: new ones, and ones that come back (STA-3). */
  readonly concurrencies: Concurrency[]
  readonly rates: Staged<ScopedRate>[]
  readonly pools: Staged<PartitionPool>[]
  readonly deliveries: Staged<DeliveryPlaces>[]
  readonly limits: { readonly state: Concurrency; readonly limit: number }[]
  readonly openBodies: { readonly state: DeliveryPlaces; readonly maxOpenBodies: number }[]

  constructor(kernel: Kernel) {
    this.#kernel = kernel
    this.concurrencies = []
    this.rates = []
    this.pools = []
    this.deliveries = []
    this.limits = []
    this.openBodies = []
  }

  get unlimited(): Concurrency {
    return this.#kernel.unlimited
  }

  concurrency(contract: string | undefined, method: string | undefined, limit: number): Concurrency {
    const state = this.#kernel.concurrency(contract, method) ?? new Concurrency(new Scope(contract, method), limit)
    if (!state.named) this.concurrencies.push(state)
    if (state.limit !== limit) this.limits.push({ state, limit })
    return state
  }

  /** A new rate is unused and so the same at whatever instant it begins: compiling reads no clock (RUN-1). */
  rate(contract: string | undefined, method: string | undefined, config: RateConfig): ScopedRate {
    const id = `${rateKey(config)}|${scopeId(contract, method)}`
    const state = this.#kernel.rate(id) ?? new ScopedRate(new Scope(contract, method), 'rate', config, 0)
    if (!state.named) this.rates.push({ id, state })
    return state
  }

  pool(
    contract: string | undefined,
    method: string | undefined,
    selector: string,
    config: PartitionConfig,
  ): PartitionPool {
    const id = `${partitionKey(config)}|${selector.length}:${selector}${scopeId(contract, method)}`
    const state = this.#kernel.pool(id) ?? new PartitionPool(new Scope(contract, method, selector), selector, config)
    if (!state.named) this.pools.push({ id, state })
    return state
  }

  delivery(contract: string | undefined, method: string | undefined, config: DeliveryConfig): DeliveryPlaces {
    const { key, maxOpenBodies } = config
    const id = deliveryId(contract, method, key)
    const state = this.#kernel.delivery(id) ?? new DeliveryPlaces(new Scope(contract, method), key, maxOpenBodies)
    if (!state.named) this.deliveries.push({ id, state })
    if (state.maxOpenBodies !== maxOpenBodies) this.openBodies.push({ state, maxOpenBodies })
    return state
  }
}

/** Without the bound, which is live like a concurrency limit. */
export function deliveryId(contract: string | undefined, method: string | undefined, selector: string): string {
  return `${selector.length}:${selector}${scopeId(contract, method)}`
}

/** Unambiguous, unlike the names that people read: ids may contain any character. */
export function scopeId(contract: string | undefined, method: string | undefined): string {
  if (contract === undefined) return 'global'
  return method === undefined ? `contract:${contract}` : `method:${contract.length}:${contract}${method}`
}
