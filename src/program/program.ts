import type { Config, QueueConfig } from '../config/types.ts'
import type { DeliveryKey } from '../kernel/delivery.ts'
import type { Partition } from '../kernel/partitions.ts'
import { ScopeMap } from '../kernel/scope-map.ts'
import type { BoundScopes } from './bound-scopes.ts'
import { Route } from './route.ts'

/** The partitions that a call holds. Most have none, and most of the others one. */
export type CallPartitions = Partition | readonly Partition[] | null

/** Who takes a call's permits back when its lease is released. */
export interface CallKeeper {
  release(route: Route, partitions: CallPartitions): void
  /** A place among the open bodies is given back, apart from permits (REL-3). */
  closeBody(place: DeliveryKey): void
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
    const route = new Route(this, global, its?.own ?? none, own ?? none)
    this.#routes.set(contract, method, route)
    return route
  }

  get isIdle(): boolean {
    return this.active === 0 && this.queued === 0
  }
}
