import type { Selector } from '../call.ts'
import type { DeliveryConfig, HoldUntil, MethodConfig } from '../config/types.ts'
import type { Concurrency } from '../kernel/concurrency.ts'
import type { DeliveryPlaces } from '../kernel/delivery.ts'
import type { PartitionPool } from '../kernel/partitions.ts'
import type { ScopedRate } from '../kernel/scoped-rate.ts'

/**
 * One scope of a configuration, bound to the kernel's states. It knows no program and no other scope, so that every
 * generation that leaves the scope as it was has the very same one (`update.compile`).
 */
export interface BoundScope {
  /** What it was bound from: the same object means that nothing in it changed. */
  readonly config: MethodConfig
  /** The kernel's unlimited one where the scope has none. */
  readonly concurrency: Concurrency
  /** Null for most scopes: they limit concurrency and nothing else. */
  readonly extras: Extras | null
}

/** A pool, and who says which of its partitions a call is in. */
interface BoundPool {
  readonly pool: PartitionPool
  readonly select: Selector
}

/** A bound on open bodies with the state that counts them, and who says whose body it is. */
export interface BoundDelivery {
  readonly config: DeliveryConfig
  readonly places: DeliveryPlaces
  readonly select: Selector
}

interface Extras {
  readonly rate: ScopedRate | undefined
  readonly pools: readonly BoundPool[]
  readonly holdUntil: HoldUntil | undefined
  readonly delivery: BoundDelivery | undefined
}

export interface BoundContract {
  readonly own: BoundScope
  readonly methods: ReadonlyMap<string, BoundScope>
}

/** All scopes of a configuration: its calls look up here which states they need, never in the kernel (ADM-2). */
export interface BoundScopes {
  readonly global: BoundScope
  readonly contracts: ReadonlyMap<string, BoundContract>
  /** Stands in for the scopes that a route does not have. */
  readonly none: BoundScope
}
