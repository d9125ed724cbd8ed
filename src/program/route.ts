import { assert } from '../assert.ts'
import type { Selector } from '../call.ts'
import type { DeliveryConfig, HoldUntil } from '../config/types.ts'
import { Concurrency, UNLIMITED } from '../kernel/concurrency.ts'
import type { DeliveryPlaces } from '../kernel/delivery.ts'
import type { PartitionPool } from '../kernel/partitions.ts'
import type { Resource } from '../kernel/resource.ts'
import type { ScopedRate } from '../kernel/scoped-rate.ts'
import type { BoundDelivery, BoundScope } from './bound-scopes.ts'
import type { Program } from './program.ts'

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

/**
 * The way of one (contract, method) through a program: the kernel's states that its scopes were bound to when the
 * program was compiled, so that a call looks nothing up in the kernel (ADM-2). A scope without concurrency is bound to
 * the kernel's unlimited one: three permits to take, always, and one shape.
 */
export class Route {
  readonly program: Program
  readonly globalSlots: Concurrency
  readonly contractSlots: Concurrency
  readonly methodSlots: Concurrency
  /** The rates of its scopes, in judging order. */
  readonly rates: readonly ScopedRate[]
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

  /** A method's own `holdUntil` and delivery replace its contract's. */
  constructor(program: Program, global: BoundScope, contract: BoundScope, method: BoundScope) {
    const delivery = method.extras?.delivery ?? contract.extras?.delivery
    const hasExtras = global.extras !== null || contract.extras !== null || method.extras !== null
    const { gates, rates, keyed } = hasExtras ? gatesOf([global, contract, method], delivery) : SLOTS_ONLY
    this.program = program
    this.globalSlots = global.concurrency
    this.contractSlots = contract.concurrency
    this.methodSlots = method.concurrency
    this.rates = rates
    this.keyed = keyed
    this.onlyPool = onlyPoolOf(keyed)
    this.isPlain = keyed.length === 0 && rates.length === 0
    this.holdUntil = method.extras?.holdUntil ?? contract.extras?.holdUntil ?? 'handler'
    this.delivery = delivery?.config
    this.lane = null
    this.#gates = gates
    this.#resources = undefined
    this.#scopes = undefined
  }

  /** The resources that need no key, in judging order. */
  get resources(): readonly Resource[] {
    this.#resources ??=
      this.#gates === null
        ? [this.globalSlots, this.contractSlots, this.methodSlots].filter(({ limit }) => limit !== UNLIMITED)
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
    return this.globalSlots.hasRoom && this.contractSlots.hasRoom && this.methodSlots.hasRoom
  }

  /** Takes one of everything that needs no key, or nothing. For a call while nobody waits. */
  takeIfRoom(nowMs: number): boolean {
    if (this.rates.length > 0) return this.hasRoomInSlots && this.takeOrLack(nowMs) === null
    return Concurrency.takeEach(this.globalSlots, this.contractSlots, this.methodSlots)
  }

  /** As {@link takeIfRoom}, for a call that has seen {@link hasRoomInSlots}; says which rate is lacking. */
  takeOrLack(nowMs: number): ScopedRate | null {
    const { rates } = this
    const last = rates.length - 1
    // By index: an iterator costs as much as a rate (`core.rate`).
    for (let index = 0; index < last; index += 1) {
      const rate = rates[index]
      if (rate !== undefined && rate.msUntilRoom(nowMs, 0) > 0) return rate
    }
    // All the others have room, so this one is asked and taken in one; most routes with a rate have no other.
    const rate = last < 0 ? undefined : rates[last]
    if (rate !== undefined && !rate.takeIfRoom(nowMs)) return rate
    for (let index = 0; index < last; index += 1) rates[index]?.take(nowMs)
    takeSlots(this)
    return null
  }

  /** Takes one of everything that needs no key. The caller has seen room everywhere. */
  take(nowMs: number): void {
    const { rates } = this
    for (let index = 0; index < rates.length; index += 1) rates[index]?.take(nowMs)
    takeSlots(this)
  }
}

/** Of all three, also where no gate stands for one: every release gives three back. */
function takeSlots({ globalSlots, contractSlots, methodSlots }: Route): void {
  assert(Concurrency.takeEach(globalSlots, contractSlots, methodSlots), 'permits are taken without room')
}

interface Asked {
  /** In judging order: the delivery first, then each scope's own. Null: the limited ones of the three slots are all. */
  readonly gates: readonly Gate[] | null
  readonly rates: readonly ScopedRate[]
  readonly keyed: readonly KeyedGate[]
}

/** By scopes that limit concurrency and nothing else, as most do. */
const SLOTS_ONLY: Asked = { gates: null, rates: [], keyed: [] }

function gatesOf(scopes: readonly BoundScope[], delivery: BoundDelivery | undefined): Asked {
  const rates: ScopedRate[] = []
  const keyed: KeyedGate[] = []
  const gates: Gate[] = []
  const addKeyed = (gate: KeyedGate): void => {
    keyed.push(gate)
    gates.push(gate)
  }
  if (delivery !== undefined) addKeyed({ kind: 'delivery', places: delivery.places, select: delivery.select })
  for (const { config, concurrency, extras } of scopes) {
    if (config.concurrency !== undefined) gates.push({ kind: 'resource', resource: concurrency })
    if (extras === null) continue
    if (extras.rate !== undefined) {
      rates.push(extras.rate)
      gates.push({ kind: 'resource', resource: extras.rate })
    }
    for (const { pool, select } of extras.pools) addKeyed({ kind: 'pool', pool, select })
  }
  return { gates, rates, keyed }
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
