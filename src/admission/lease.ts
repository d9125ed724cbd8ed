import type { DeliveryConfig, HoldUntil } from '../config/types.ts'
import type { DeliveryKey } from '../kernel/delivery.ts'
import { Partition } from '../kernel/partitions.ts'
import type { Route } from '../program/route.ts'

/** What an admitted call holds: its permits on every scope, released exactly once (ADM-7). */
export interface Lease {
  readonly kind: 'admitted'
  /** Of the program that the call captured; it uses that one to its end (PUB-6). */
  readonly generation: number
  /** How long the call was in the queue; 0 when it was admitted at once. */
  readonly waitedMs: number
  /** Names of the scopes on its route, as in the snapshot. */
  readonly scopes: readonly string[]
  readonly holdUntil: HoldUntil
  readonly delivery: DeliveryConfig | undefined
  /** Gives everything back, in one step, and starts the waiters that now fit. Again: nothing happens. */
  release(): void
  /** Gives the permits back and keeps a place under `delivery`, which {@link release} gives back at the body's end. */
  releasePermits(): void
  /** As {@link release}, for `using`. */
  [Symbol.dispose](): void
}

/**
 * What a lease holds besides the permits of its route's three slots, and how long its call waited.
 *
 * A number: it holds nothing else, and waited so many milliseconds; −1 − n instead of n once its permits are released. A
 * partition: it holds that one, the only one of its route, and did not wait. So most leases need no object but themselves.
 */
export type Holding = number | Partition | Held

export interface Held {
  readonly partitions: readonly Partition[] | null
  readonly waitedMs: number
  place: DeliveryKey | null // null: none, or given back
  permits: boolean // still held?
}

/** Of a lease that held a partition alone and is released. */
const LEFT: Held = { partitions: null, waitedMs: 0, place: null, permits: false }

/**
 * The lease of a call with limits. Fresh for every call, never pooled: a stale handle must not release another's
 * permit. Two fields, 40 bytes on V8, and no private method, for which each lease would carry a mark (`core.immediate`).
 */
export class PermitLease implements Lease {
  readonly #route: Route
  #held: Holding

  constructor(route: Route, held: Holding) {
    this.#route = route
    this.#held = held
  }

  get kind(): 'admitted' {
    return 'admitted'
  }

  get generation(): number {
    return this.#route.program.generation
  }

  get waitedMs(): number {
    const held = this.#held
    if (typeof held === 'number') return held < 0 ? -1 - held : held
    return held instanceof Partition ? 0 : held.waitedMs
  }

  get scopes(): readonly string[] {
    const route = this.#route
    const { scopes } = route
    const held = this.#held
    // Every request is told its scopes, and most have no pool: their gates need not be made (`hono.admission`).
    if (!route.hasPools || held instanceof Partition || held === LEFT) return scopes
    // A selector without a key has left the call unpartitioned there (PAR-3).
    const partitions = typeof held === 'number' ? null : held.partitions
    const entered = partitions?.map((partition) => partition.pool) ?? []
    const outside = route.gates.flatMap((gate) =>
      gate.kind === 'pool' && !entered.includes(gate.pool) ? [gate.pool] : [],
    )
    return scopes.filter((name) => !outside.some((pool) => pool.scope.name === name))
  }

  get holdUntil(): HoldUntil {
    return this.#route.holdUntil
  }

  get delivery(): DeliveryConfig | undefined {
    return this.#route.delivery
  }

  release(): void {
    const held = this.#held
    if (typeof held !== 'number') PermitLease.#release(this, held)
    else if (held >= 0) {
      this.#held = -1 - held
      this.#route.program.keeper.release(this.#route, null)
    }
  }

  // Apart, so that the rest is compiled into its callers, and static, as there is no private method (`core.immediate`).
  static #release(lease: PermitLease, held: Partition | Held): void {
    if (held instanceof Partition) {
      lease.#held = LEFT
      lease.#route.program.keeper.release(lease.#route, held)
    } else releaseHeld(lease.#route, held)
  }

  releasePermits(): void {
    const held = this.#held
    if (typeof held === 'number' || held instanceof Partition) this.release()
    else releasePermits(this.#route, held)
  }

  [Symbol.dispose](): void {
    this.release()
  }
}

function releaseHeld(route: Route, held: Held): void {
  releasePermits(route, held)
  const { place } = held
  if (place === null) return
  held.place = null
  route.program.keeper.closeBody(place)
}

function releasePermits(route: Route, held: Held): void {
  if (!held.permits) return
  held.permits = false
  route.program.keeper.release(route, held.partitions)
}

/** The lease of a call while admission is disabled: one for all, nothing to release (ADM-11). */
export class OpenLease implements Lease {
  readonly #generation: number

  constructor(generation: number) {
    this.#generation = generation
  }

  get kind(): 'admitted' {
    return 'admitted'
  }

  get generation(): number {
    return this.#generation
  }

  get waitedMs(): number {
    return 0
  }

  get scopes(): readonly string[] {
    return []
  }

  get holdUntil(): HoldUntil {
    return 'handler'
  }

  get delivery(): DeliveryConfig | undefined {
    return undefined
  }

  release(): void {}

  releasePermits(): void {}

  [Symbol.dispose](): void {}
}
