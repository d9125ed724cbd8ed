import type { Config, RateConfig } from '../config/types.ts'
import type { Concurrency } from '../kernel/concurrency.ts'
import type { DeliveryPlaces } from '../kernel/delivery.ts'
import type { Kernel } from '../kernel/kernel.ts'
import type { PartitionPool } from '../kernel/partitions.ts'
import { permitsOf, windowMsOf } from '../kernel/rate.ts'
import type { Scope } from '../kernel/scope.ts'
import type { ScopedRate } from '../kernel/scoped-rate.ts'
import type { Program } from '../program/program.ts'
import type { RefusalReason } from '../refusal.ts'
import type { Totals } from '../totals.ts'
import type { Lifecycle, State } from './lifecycle.ts'

/** What an entry is about; names are for people, the other labels for machines. */
export interface ScopeLabels {
  readonly scope: string
  readonly contract?: string
  readonly method?: string
}

export interface ScopeSnapshot extends ScopeLabels {
  /** Permits; of a removed scope that is still held, the last limit. */
  readonly limit: number
  readonly active: number
  /** Waiters that need the scope, whether or not it is what they lack. */
  readonly waiting: number
}

/** What is counted for a definition: one that no program names any more is kept while its history matters (RAT-4). */
export interface DefinedLabels extends ScopeLabels {
  /** Does the current configuration name it? */
  readonly current: boolean
}

export interface RateSnapshot extends DefinedLabels {
  readonly algorithm: RateConfig['algorithm']
  /** Permits of an unused rate, and the milliseconds in which that many come back. */
  readonly limit: number
  readonly windowMs: number
  readonly remaining: number
  readonly waiting: number
}

export interface PartitionsSnapshot extends DefinedLabels {
  readonly selector: string
  /** Keys kept now. */
  readonly partitions: number
  readonly maxPartitions: number
  /** Concurrency of each key; null: unlimited. */
  readonly limit: number | null
  /** Calls that run, and that wait, in all keys together. */
  readonly active: number
  readonly waiting: number
}

export interface DeliverySnapshot extends DefinedLabels {
  readonly selector: string
  /** Keys with open bodies or waiters now. */
  readonly keys: number
  /** Open bodies of all keys together, and how many each key may have. */
  readonly openBodies: number
  readonly maxOpenBodies: number
}

export interface GenerationSnapshot {
  readonly generation: number
  readonly active: number
  readonly queued: number
}

/** Everything there is to see, plain and JSON-ready (API-4). A copy: nothing in it changes later. */
export interface Snapshot {
  readonly state: State
  readonly draining: boolean
  /** Draining has been announced, but calls are still admitted. */
  readonly announcing: boolean
  readonly generation: number
  /** null while disabled. */
  readonly config: Config | null
  readonly active: number
  readonly queued: { readonly calls: number; readonly bytes: number; readonly oldestWaitMs: number }
  readonly scopes: readonly ScopeSnapshot[]
  readonly rates: readonly RateSnapshot[]
  readonly partitions: readonly PartitionsSnapshot[]
  readonly deliveries: readonly DeliverySnapshot[]
  /** The current one, and retired ones that still have calls. */
  readonly generations: readonly GenerationSnapshot[]
  readonly totals: {
    readonly admitted: number
    readonly queued: number
    readonly refused: { readonly [reason in RefusalReason]: number }
  }
}

export interface Observed {
  readonly lifecycle: Lifecycle
  readonly kernel: Kernel
  readonly totals: Totals
  readonly current: Program | null
  readonly generation: number
  readonly retired: Iterable<Program>
  readonly active: number
  readonly oldestWaitMs: number
}

/** Reads everything; changes nothing that a call could notice. O(states and partitions). */
export function takeSnapshot(observed: Observed, nowMs: number): Snapshot {
  const { lifecycle, kernel, totals, current } = observed
  kernel.purge(nowMs)
  const programs = current === null ? [...observed.retired] : [current, ...observed.retired]
  return {
    state: lifecycle.state,
    draining: lifecycle.draining,
    announcing: lifecycle.drain === 'announcing',
    generation: observed.generation,
    config: current?.config ?? null,
    active: observed.active,
    queued: { calls: kernel.ledger.calls, bytes: kernel.ledger.bytes, oldestWaitMs: observed.oldestWaitMs },
    scopes: Array.from(kernel.concurrencies(), scopeOf).filter((scope) => scope !== undefined),
    rates: Array.from(kernel.rates(), (rate) => rateOf(rate, nowMs)),
    partitions: Array.from(kernel.pools(), (pool) => partitionsOf(pool, nowMs)),
    deliveries: Array.from(kernel.deliveries(), deliveryOf),
    generations: programs.map(({ generation, active, queued }) => ({ generation, active, queued })),
    totals: { admitted: totals.admitted, queued: totals.queued, refused: { ...totals.refused } },
  }
}

/** A scope that no program names is shown while somebody holds or awaits a permit of it. */
function scopeOf({ scope, limit, active, waiting, named }: Concurrency): ScopeSnapshot | undefined {
  if (!named && active === 0 && waiting === 0) return undefined
  // Written out: there may be ten thousand, and spreading labels takes two microseconds each.
  const { name, contract, method } = scope
  if (contract === undefined) return { scope: name, limit, active, waiting }
  if (method === undefined) return { scope: name, contract, limit, active, waiting }
  return { scope: name, contract, method, limit, active, waiting }
}

function rateOf({ scope, rate, waiting, named: current }: ScopedRate, nowMs: number): RateSnapshot {
  const { config } = rate
  return {
    ...labelsOf(scope),
    current,
    algorithm: config.algorithm,
    limit: permitsOf(config),
    windowMs: windowMsOf(config),
    remaining: rate.remaining(nowMs),
    waiting,
  }
}

function partitionsOf(pool: PartitionPool, nowMs: number): PartitionsSnapshot {
  pool.sweep(nowMs, Number.POSITIVE_INFINITY)
  let [active, waiting] = [0, 0]
  for (const partition of pool.values()) {
    waiting += (partition.concurrency ?? partition.rate)?.waiting ?? 0
    active += partition.active
  }
  return {
    ...labelsOf(pool.scope),
    current: pool.named,
    selector: pool.selector,
    partitions: pool.size,
    maxPartitions: pool.config.maxPartitions,
    limit: pool.config.concurrency ?? null,
    active,
    waiting,
  }
}

function deliveryOf(places: DeliveryPlaces): DeliverySnapshot {
  let openBodies = 0
  for (const key of places.keys()) openBodies += key.open
  const { scope, selector, size: keys, maxOpenBodies, named: current } = places
  return { ...labelsOf(scope), current, selector, keys, openBodies, maxOpenBodies }
}

function labelsOf({ name, contract, method }: Scope): ScopeLabels {
  return {
    scope: name,
    ...(contract === undefined ? {} : { contract }),
    ...(method === undefined ? {} : { method }),
  }
}
