import { assert } from '../assert.ts'
import type { Selector } from '../call.ts'
import type { Config, DeliveryConfig, HoldUntil, QueueConfig } from '../config/types.ts'
import { Concurrency, UNLIMITED } from '../kernel/concurrency.ts'
import type { DeliveryKey, DeliveryPlaces } from '../kernel/delivery.ts'
import type { Partition, PartitionPool } from '../kernel/partitions.ts'
import type { Resource } from '../kernel/resource.ts'
import { ScopeMap } from '../kernel/scope-map.ts'
import type { ScopedRate } from '../kernel/scoped-rate.ts'
import { type Asks, asksOf, type BoundScopes } from './bound-scopes.ts'

/** A bound on open bodies with the state that counts them, and who says whose body it is. */
export interface BoundDelivery {
  readonly config: DeliveryConfig
  readonly places: DeliveryPlaces
  readonly select: Selector
}

/** One thing that a route asks: a resource of the scope itself, or the partition pool that holds a key's resources. */
export type Gate = { readonly kind: 'resource'; readonly resource: Resource } | KeyedGate

/** Which resources they are depends on a key of the call. */
export type KeyedGate =
  | PoolGate
  | { readonly kind: 'delivery'; readonly places: DeliveryPlaces; readonly select: Selector }

export interface PoolGate {
  readonly kind: 'pool'
  readonly pool: PartitionPool
  readonly select: Selector
}

/** Who takes a call's permits back when its lease is released. */
export interface CallKeeper {
  /** Most calls have no partition, and most of the others one. */
  release(route: Route, partitions: Partition | readonly Partition[] | null): void
  /** A place among the open bodies is given back, apart from permits (REL-3). */
  closeBody(place: DeliveryKey): void
}

/**
 * The way of one (contract, method) through a program: the kernel's states that its scopes were bound to when the
 * program was compiled, so that a call looks nothing up in the kernel (ADM-2). A scope without concurrency is bound to
 * the kernel's unlimited one: three permits to take, always, and one shape.
 */
export class Route {
  readonly program: Program
  readonly global: Concurrency
  readonly contract: Concurrency
  readonly method: Concurrency
  /** The rates of its scopes, in judging order. */
  readonly timed: readonly ScopedRate[]
  /** Of the gates, those that ask for a key. */
  readonly keyed: readonly KeyedGate[]
  /** The one of these, if there is one and it is a pool, as on most routes with keys (`core.partition`). */
  readonly onlyPool: PoolGate | null
  /** Only concurrency: deciding needs no clock, no key and no loop. */
  readonly isPlain: boolean
  readonly holdUntil: HoldUntil
  readonly delivery: DeliveryConfig | undefined
  /** The queue's own record of the waiters of this route, as in {@link Resource.line}. */
  lane: object | null
  // Most routes need no list of gates, and the others only when they are asked for (`heap.rule`).
  readonly #gates: readonly Gate[] | null
  #resources: readonly Resource[] | undefined
  #scopes: readonly string[] | undefined

  constructor(program: Program, asks: Asks) {
    this.program = program
    this.global = asks.global
    this.contract = asks.contract
    this.method = asks.method
    this.timed = asks.timed
    this.keyed = asks.keyed
    this.onlyPool = onlyPoolOf(asks.keyed)
    this.isPlain = asks.keyed.length === 0 && asks.timed.length === 0
    this.holdUntil = asks.holdUntil
    this.delivery = asks.delivery?.config
    this.lane = null
    this.#gates = asks.gates
    this.#resources = undefined
    this.#scopes = undefined
  }

  /** The resources that need no key, in judging order. */
  get resources(): readonly Resource[] {
    this.#resources ??=
      this.#gates === null
        ? [this.global, this.contract, this.method].filter(({ limit }) => limit !== UNLIMITED)
        : this.#gates.flatMap((gate) => (gate.kind === 'resource' ? [gate.resource] : []))
    return this.#resources
  }

  /** Everything the route asks, in judging order: delivery, global, contract, method; each concurrency, rate, partitions. */
  get gates(): readonly Gate[] {
    return this.#gates ?? this.resources.map((resource) => ({ kind: 'resource', resource }))
  }

  /** May a call of the route be in partitions? */
  get hasPools(): boolean {
    return this.keyed.some(({ kind }) => kind === 'pool')
  }

  /** Names of the scopes on the route (WEB-5). */
  get scopes(): readonly string[] {
    this.#scopes ??= namesOf(this.gates)
    return this.#scopes
  }

  /** Has everything room that needs neither a key nor a clock, if nobody waits for it? */
  get hasRoomInSlots(): boolean {
    return this.global.hasRoom && this.contract.hasRoom && this.method.hasRoom
  }

  /** Takes one of everything that needs no key, or nothing. For a call while nobody waits. */
  takeIfRoom(nowMs: number): boolean {
    if (this.timed.length > 0) return this.hasRoomInSlots && this.takeOrLack(nowMs) === null
    return Concurrency.takeEach(this.global, this.contract, this.method)
  }

  /** As {@link takeIfRoom}, for a call that has seen {@link hasRoomInSlots}; says which rate is lacking. */
  takeOrLack(nowMs: number): ScopedRate | null {
    const { timed } = this
    const last = timed.length - 1
    // By index: an iterator costs as much as a rate (`core.rate`).
    for (let index = 0; index < last; index += 1) {
      const rate = timed[index]
      if (rate !== undefined && rate.msUntilRoom(nowMs, 0) > 0) return rate
    }
    // All the others have room, so this one is asked and taken in one; most routes with a rate have no other.
    const rate = last < 0 ? undefined : timed[last]
    if (rate !== undefined && !rate.takeIfRoom(nowMs)) return rate
    for (let index = 0; index < last; index += 1) timed[index]?.take(nowMs)
    takeSlots(this)
    return null
  }

  /** Takes one of everything that needs no key. The caller has seen room everywhere. */
  take(nowMs: number): void {
    const { timed } = this
    for (let index = 0; index < timed.length; index += 1) timed[index]?.take(nowMs)
    takeSlots(this)
  }
}

/** Of all three, also where no gate stands for one: every release gives three back. */
function takeSlots({ global, contract, method }: Route): void {
  assert(Concurrency.takeEach(global, contract, method), 'permits are taken without room')
}

function onlyPoolOf([first, second]: readonly KeyedGate[]): PoolGate | null {
  return first?.kind === 'pool' && second === undefined ? first : null
}

/** A scope's concurrency and rate have its name once, each of its pools one of its own. */
function namesOf(gates: readonly Gate[]): string[] {
  const names = new Set<string>()
  for (const gate of gates) {
    if (gate.kind === 'resource') names.add(gate.resource.scope.name)
    else if (gate.kind === 'pool') names.add(gate.pool.scope.name)
  }
  return [...names]
}

/**
 * One compiled configuration. Its policy never changes; its two counters say who still uses it: a retired program is
 * reclaimed when both are 0 (PUB-7).
 */
export class Program {
  readonly generation: number
  readonly config: Config
  /** Null where any bound is 0, for then nothing queues. */
  readonly queue: QueueConfig | null
  readonly keeper: CallKeeper
  readonly scopes: BoundScopes
  // Made when they are first asked for: most of ten thousand are asked for in few generations (`update.compile`).
  readonly #routes: ScopeMap<Route>
  active: number // admitted calls that have not released, ≥ 0
  queued: number // waiters, ≥ 0

  constructor(generation: number, config: Config, queue: QueueConfig | null, keeper: CallKeeper, scopes: BoundScopes) {
    this.generation = generation
    this.config = config
    this.queue = queue
    this.keeper = keeper
    this.scopes = scopes
    this.#routes = new ScopeMap()
    this.active = 0
    this.queued = 0
  }

  /** The route of a call; an id that the configuration does not name has the scopes above it (WEB-1). */
  route(contract: string | undefined, method: string | undefined): Route {
    return this.#routes.get(contract, method) ?? this.#makeRoute(contract, method)
  }

  #makeRoute(contract: string | undefined, method: string | undefined): Route {
    const { global, contracts, none } = this.scopes
    const its = contract === undefined ? undefined : contracts.get(contract)
    const own = method === undefined ? undefined : its?.methods.get(method)
    // Not kept under names that are not configured: there is no end to those.
    if (contract !== undefined && its === undefined) return this.route(undefined, undefined)
    if (method !== undefined && own === undefined) return this.route(contract, undefined)
    const route = new Route(this, asksOf(global, its?.own ?? none, own ?? none))
    this.#routes.set(contract, method, route)
    return route
  }

  get isIdle(): boolean {
    return this.active === 0 && this.queued === 0
  }
}
