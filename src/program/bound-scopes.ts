import type { Selector } from '../call.ts'
import type { HoldUntil, MethodConfig } from '../config/types.ts'
import type { Concurrency } from '../kernel/concurrency.ts'
import type { PartitionPool } from '../kernel/partitions.ts'
import type { ScopedRate } from '../kernel/scoped-rate.ts'
import type { BoundDelivery, Gate, KeyedGate } from './program.ts'

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
  readonly others: OtherAsks | null
}

/** A pool, and who says which of its partitions a call is in. */
interface BoundPool {
  readonly pool: PartitionPool
  readonly select: Selector
}

interface OtherAsks {
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

/** What a route asks: that of its scopes together. */
export interface Asks {
  readonly global: Concurrency
  readonly contract: Concurrency
  readonly method: Concurrency
  readonly timed: readonly ScopedRate[]
  readonly keyed: readonly KeyedGate[]
  /** In judging order: the delivery first, then each scope's own. Null: the limited ones of the three are all. */
  readonly gates: readonly Gate[] | null
  readonly holdUntil: HoldUntil
  readonly delivery: BoundDelivery | undefined
}

const NOTHING: readonly never[] = []

/** What the way through three scopes asks; a method's own `holdUntil` and delivery replace its contract's. */
export function asksOf(global: BoundScope, contract: BoundScope, method: BoundScope): Asks {
  if (global.others === null && contract.others === null && method.others === null) {
    // Written out: an object that is spread and added to takes a hundred times as long (`update.whole`).
    return {
      global: global.concurrency,
      contract: contract.concurrency,
      method: method.concurrency,
      timed: NOTHING,
      keyed: NOTHING,
      gates: null,
      holdUntil: 'handler',
      delivery: undefined,
    }
  }
  const holdUntil = method.others?.holdUntil ?? contract.others?.holdUntil ?? 'handler'
  const delivery = method.others?.delivery ?? contract.others?.delivery
  const timed: ScopedRate[] = []
  const keyed: KeyedGate[] = []
  const gates: Gate[] = []
  if (delivery !== undefined) {
    const gate: KeyedGate = { kind: 'delivery', places: delivery.places, select: delivery.select }
    keyed.push(gate)
    gates.push(gate)
  }
  for (const { config, concurrency, others } of [global, contract, method]) {
    if (config.concurrency !== undefined) gates.push({ kind: 'resource', resource: concurrency })
    if (others?.rate !== undefined) {
      timed.push(others.rate)
      gates.push({ kind: 'resource', resource: others.rate })
    }
    for (const { pool, select } of others?.pools ?? NOTHING) {
      const gate: KeyedGate = { kind: 'pool', pool, select }
      keyed.push(gate)
      gates.push(gate)
    }
  }
  return {
    global: global.concurrency,
    contract: contract.concurrency,
    method: method.concurrency,
    timed,
    keyed,
    gates,
    holdUntil,
    delivery,
  }
}
