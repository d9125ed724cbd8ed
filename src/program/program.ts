import type { Config, DeliveryConfig, HoldUntil } from '../config/types.ts'
import { type Concurrency, UNLIMITED } from '../kernel/concurrency.ts'
import type { DeliveryKey, DeliveryPlaces } from '../kernel/delivery.ts'
import type { Partition, PartitionPool } from '../kernel/partitions.ts'
import type { Resource } from '../kernel/resource.ts'

/** A bound on open bodies with the state that counts them. */
export interface BoundDelivery {
  readonly config: DeliveryConfig
  readonly places: DeliveryPlaces
}

/** One thing that a route asks: a resource of the scope itself, or the partition pool that holds a key's resources. */
export type Gate = { readonly kind: 'resource'; readonly resource: Resource } | KeyedGate

/** Which resources they are depends on a key of the call. */
export type KeyedGate =
  | { readonly kind: 'pool'; readonly pool: PartitionPool }
  | { readonly kind: 'delivery'; readonly places: DeliveryPlaces }

/** What a waiter needs to know of the queue; null where any bound is 0, for then nothing queues. */
export interface QueuePolicy {
  readonly maxQueuedCalls: number
  readonly maxQueuedBytes: number
  readonly maxQueueDelayMs: number
  readonly queueOneWayCalls: boolean
  readonly unknownBodyBytes: number
}

/** Who takes a call's permits back when its lease is released. */
export interface CallKeeper {
  /** `partitions` is null for most calls, which have none. */
  release(route: Route, partitions: readonly Partition[] | null): void
  /** A place among the open bodies is given back, apart from permits (REL-3). */
  closeBody(place: DeliveryKey): void
}

export interface Slots {
  readonly global: Concurrency
  readonly contract: Concurrency
  readonly method: Concurrency
}

/** What a route asks, as its fields say; lists are shared by the routes below a scope. */
export interface Asks {
  /** Null: the limited ones of the slots are all. */
  readonly resources: readonly Resource[] | null
  readonly timed: readonly Resource[]
  readonly keyed: readonly KeyedGate[]
  /** All in judging order, but for the delivery, which comes first; null: the resources are all. */
  readonly gates: readonly Gate[] | null
  readonly holdUntil: HoldUntil | undefined
  readonly delivery: BoundDelivery | undefined
}

export const ASKS_NOTHING: Asks = {
  resources: null,
  timed: [],
  keyed: [],
  gates: null,
  holdUntil: undefined,
  delivery: undefined,
}

/**
 * The way of one (contract, method) through a program, bound to the kernel's states when the program is compiled, so
 * that a call looks nothing up (ADM-2). A scope without concurrency is bound to the kernel's unlimited one: three
 * slots, always present, one shape.
 */
export class Route {
  readonly program: Program
  readonly global: Concurrency
  readonly contract: Concurrency
  readonly method: Concurrency
  /** Of the resources, those that the three slots are not. */
  readonly timed: readonly Resource[]
  /** Of the gates, those that ask for a key. */
  readonly keyed: readonly KeyedGate[]
  /** Only concurrency: deciding needs no clock, no key and no loop. */
  readonly isPlain: boolean
  readonly holdUntil: HoldUntil
  readonly delivery: DeliveryConfig | undefined
  /** The queue's own record of the waiters of this route, as in {@link Resource.line}. */
  lane: object | null
  // Most routes need no list of gates, and the others only when they are asked for (`heap.rule`).
  readonly #gates: readonly Gate[] | null
  #resources: readonly Resource[] | null
  #scopes: readonly string[] | undefined

  constructor(program: Program, slots: Slots, asks: Asks) {
    this.program = program
    this.global = slots.global
    this.contract = slots.contract
    this.method = slots.method
    this.timed = asks.timed
    const places: KeyedGate | undefined = asks.delivery && { kind: 'delivery', places: asks.delivery.places }
    this.keyed = places === undefined ? asks.keyed : [places, ...asks.keyed]
    this.isPlain = this.keyed.length === 0 && this.timed.length === 0
    this.holdUntil = asks.holdUntil ?? 'handler'
    this.delivery = asks.delivery?.config
    this.lane = null
    this.#gates =
      places === undefined ? asks.gates : [places, ...(asks.gates ?? (asks.resources ?? limitedOf(slots)).map(gateOf))]
    this.#resources = asks.resources
    this.#scopes = undefined
  }

  /** The resources that need no key, in judging order. */
  get resources(): readonly Resource[] {
    this.#resources ??= limitedOf(this)
    return this.#resources
  }

  /** Everything the route asks, in judging order: delivery, global, contract, method; each concurrency, rate, partitions. */
  get gates(): readonly Gate[] {
    return this.#gates ?? this.resources.map(gateOf)
  }

  /** Has the route partitions, so that a lease may hold more than the three slots? */
  get hasPools(): boolean {
    return this.keyed.some(({ kind }) => kind === 'pool')
  }

  /** Names of the scopes on the route (WEB-5). */
  get scopes(): readonly string[] {
    this.#scopes ??= namesOf(this.gates)
    return this.#scopes
  }

  /** Is there room everywhere that needs no key, if nobody waits for it? */
  hasRoom(nowMs: number): boolean {
    if (!this.global.hasRoom || !this.contract.hasRoom || !this.method.hasRoom) return false
    const { timed } = this
    // By index, as in `take`: an iterator costs as much as a rate (`core.rate`).
    for (let index = 0; index < timed.length; index += 1) {
      if (timed[index]?.msUntilRoom(nowMs, 0) !== 0) return false
    }
    return true
  }

  /**
   * Takes one of everything that needs no key, also of the slots that no gate stands for: every release gives three
   * back, so every admission takes three.
   */
  take(nowMs: number): void {
    this.global.take()
    this.contract.take()
    this.method.take()
    const { timed } = this
    for (let index = 0; index < timed.length; index += 1) timed[index]?.take(nowMs)
  }
}

/** The slots that stand for a limit. */
export function limitedOf({ global, contract, method }: Slots): Resource[] {
  return [global, contract, method].filter(({ limit }) => limit !== UNLIMITED)
}

export function gateOf(resource: Resource): Gate {
  return { kind: 'resource', resource }
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

export interface ContractRoutes {
  readonly route: Route
  readonly methods: ReadonlyMap<string, Route>
}

/**
 * One compiled configuration. Its policy never changes; its two counters say who still uses it: a retired program is
 * reclaimed when both are 0 (PUB-7).
 */
export class Program {
  readonly generation: number
  readonly config: Config
  readonly queue: QueuePolicy | null
  readonly keeper: CallKeeper
  #global: Route | null
  #contracts: ReadonlyMap<string, ContractRoutes>
  active: number // admitted calls that have not released, ≥ 0
  queued: number // waiters, ≥ 0

  constructor(generation: number, config: Config, queue: QueuePolicy | null, keeper: CallKeeper) {
    this.generation = generation
    this.config = config
    this.queue = queue
    this.keeper = keeper
    this.#global = null
    this.#contracts = new Map()
    this.active = 0
    this.queued = 0
  }

  /** Once, by the compiler: routes point back at their program. */
  bind(global: Route, contracts: ReadonlyMap<string, ContractRoutes>): void {
    this.#global = global
    this.#contracts = contracts
  }

  /** The route of a call; an id that the configuration does not name has the scopes above it (WEB-1). */
  route(contract: string | undefined, method: string | undefined): Route {
    if (contract !== undefined) {
      const routes = this.#contracts.get(contract)
      if (routes !== undefined) return (method === undefined ? undefined : routes.methods.get(method)) ?? routes.route
    }
    if (this.#global === null) throw new Error('Sluice invariant broken: a program is used before it is bound')
    return this.#global
  }

  get isIdle(): boolean {
    return this.active === 0 && this.queued === 0
  }
}
