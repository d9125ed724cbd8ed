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

  /** A method's own `holdUntil` and delivery replace its contract's. */
  constructor(program: Program, global: BoundScope, contract: BoundScope, method: BoundScope) {
    const delivery = method.others?.delivery ?? contract.others?.delivery
    const hasOthers = global.others !== null || contract.others !== null || method.others !== null
    const { gates, timed, keyed } = hasOthers ? asked([global, contract, method], delivery) : SLOTS_ONLY
    this.program = program
    this.global = global.concurrency
    this.contract = contract.concurrency
    this.method = method.concurrency
    this.timed = timed
    this.keyed = keyed
    this.onlyPool = onlyPoolOf(keyed)
    this.isPlain = keyed.length === 0 && timed.length === 0
    this.holdUntil = method.others?.holdUntil ?? contract.others?.holdUntil ?? 'handler'
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

interface Asked {
  /** In judging order: the delivery first, then each scope's own. Null: the limited ones of the three slots are all. */
  readonly gates: readonly Gate[] | null
  readonly timed: readonly ScopedRate[]
  readonly keyed: readonly KeyedGate[]
}

/** By scopes that limit concurrency and nothing else, as most do. */
const SLOTS_ONLY: Asked = { gates: null, timed: [], keyed: [] }

function asked(scopes: readonly BoundScope[], delivery: BoundDelivery | undefined): Asked {
  const timed: ScopedRate[] = []
  const keyed: KeyedGate[] = []
  const gates: Gate[] = []
  const addKeyed = (gate: KeyedGate): void => {
    keyed.push(gate)
    gates.push(gate)
  }
  if (delivery !== undefined) addKeyed({ kind: 'delivery', places: delivery.places, select: delivery.select })
  for (const { config, concurrency, others } of scopes) {
    if (config.concurrency !== undefined) gates.push({ kind: 'resource', resource: concurrency })
    if (others === null) continue
    if (others.rate !== undefined) {
      timed.push(others.rate)
      gates.push({ kind: 'resource', resource: others.rate })
    }
    for (const { pool, select } of others.pools) addKeyed({ kind: 'pool', pool, select })
  }
  return { gates, timed, keyed }
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
