import { partitionKey, rateKey } from '../config/definition-key.ts'
import { idsOf } from '../config/record-ids.ts'
import type { Config, MethodConfig, QueueConfig, ScopeConfig } from '../config/types.ts'
import { pointerStep } from '../json-pointer.ts'
import { deliveryId, type Removed, type ScopeIds } from '../kernel/kernel.ts'
import { scopeName } from '../kernel/scope.ts'
import { atOnce, SCOPES_PER_STEP, type Steps } from '../steps.ts'

/** A change of one scope's concurrency; null is absent, that is unlimited. */
export interface ScopeChange {
  /** JSON Pointer of the setting. */
  readonly pointer: string
  readonly scope: string
  readonly from: number | null
  readonly to: number | null
}

export interface QueueChange {
  readonly setting: keyof QueueConfig
  readonly from: number | boolean | null
  readonly to: number | boolean | null
}

export interface RouteChange {
  readonly pointer: string
  readonly scope: string
  readonly setting: 'holdUntil' | 'delivery'
  readonly from: unknown
  readonly to: unknown
}

/** What publishing a candidate would change, as plain data (PUB-11). */
export interface Plan {
  readonly added: readonly ScopeChange[]
  readonly removed: readonly ScopeChange[]
  readonly resized: readonly ScopeChange[]
  readonly queue: readonly QueueChange[]
  readonly routes: readonly RouteChange[]
  /** JSON Pointers of changes that an update cannot make (PUB-9); not empty: the update would be refused. */
  readonly refusals: readonly string[]
}

/** A plan, and the kernel's ids of the states that it stops naming. */
export interface Difference {
  readonly plan: Plan
  readonly removed: Removed
}

const QUEUE_SETTINGS = [
  'maxQueuedCalls',
  'maxQueuedBytes',
  'maxQueueDelayMs',
  'queueOneWayCalls',
  'unknownBodyBytes',
] as const

/**
 * Compares two configurations; the empty one stands for "disabled". Pure. What is one object in both is not looked into:
 * O(contracts), and O(rules) of the contracts that are not.
 *
 * Refusals point into the candidate or, for what it leaves out, into the current configuration. Leaving out a contract
 * or a method leaves out its rate and partitions (PUB-12).
 */
export function difference(from: Config, to: Config): Difference {
  return atOnce(differenceSteps(from, to))
}

export function* differenceSteps(from: Config, to: Config): Steps<Difference> {
  const changes = new Changes()
  changes.scope(undefined, undefined, from.global, to.global)
  changes.queue(from.queue, to.queue)
  const [before, after] = [from.contracts ?? NONE, to.contracts ?? NONE]
  let scopes = 0
  for (const id of idsOfBoth(before, after)) {
    const [old, its] = [before[id], after[id]]
    if (old !== its) {
      changes.scope(id, undefined, old, its)
      changes.settings(id, undefined, old, its)
      const [methodsBefore, methodsAfter] = [old?.methods ?? NONE, its?.methods ?? NONE]
      for (const method of idsOfBoth(methodsBefore, methodsAfter)) {
        const [oldMethod, itsMethod] = [methodsBefore[method], methodsAfter[method]]
        if (oldMethod !== itsMethod) {
          changes.scope(id, method, oldMethod, itsMethod)
          changes.settings(id, method, oldMethod, itsMethod)
        }
        scopes += 1
        if (scopes % SCOPES_PER_STEP === 0) yield
      }
    }
    scopes += 1
    if (scopes % SCOPES_PER_STEP === 0) yield
  }
  return changes
}

const NONE: { readonly [id: string]: never } = Object.freeze(Object.create(null))

class Changes implements Difference {
  readonly removed: { readonly concurrencies: ScopeIds[]; readonly deliveries: string[] }
  readonly plan: {
    readonly added: ScopeChange[]
    readonly removed: ScopeChange[]
    readonly resized: ScopeChange[]
    readonly queue: QueueChange[]
    readonly routes: RouteChange[]
    readonly refusals: string[]
  }
  // Of the contract that was asked for last: its methods come one after the other.
  #contract: string | undefined
  #pointer: string

  constructor() {
    this.#contract = undefined
    this.#pointer = ''
    this.removed = { concurrencies: [], deliveries: [] }
    this.plan = { added: [], removed: [], resized: [], queue: [], routes: [], refusals: [] }
  }

  scope(
    contract: string | undefined,
    method: string | undefined,
    before: ScopeConfig = {},
    after: ScopeConfig = {},
  ): void {
    if (before.concurrency !== after.concurrency) {
      const change = {
        pointer: `${this.#pointerOf(contract, method)}/concurrency`,
        scope: scopeName(contract, method),
        from: before.concurrency ?? null,
        to: after.concurrency ?? null,
      }
      if (change.from === null) this.plan.added.push(change)
      else if (change.to !== null) this.plan.resized.push(change)
      else {
        this.plan.removed.push(change)
        this.removed.concurrencies.push({ contract, method })
      }
    }
    if (before.rate !== undefined || after.rate !== undefined) {
      const isSame = keyOf(before.rate, rateKey) === keyOf(after.rate, rateKey)
      if (!isSame) this.plan.refusals.push(`${this.#pointerOf(contract, method)}/rate`)
    }
    if (before.partitions === undefined && after.partitions === undefined) return
    for (const selector of idsOfBoth(before.partitions ?? NONE, after.partitions ?? NONE)) {
      const same =
        keyOf(before.partitions?.[selector], partitionKey) === keyOf(after.partitions?.[selector], partitionKey)
      if (!same) this.plan.refusals.push(`${this.#pointerOf(contract, method)}/partitions${pointerStep(selector)}`)
    }
  }

  settings(contract: string, method: string | undefined, before: MethodConfig = {}, after: MethodConfig = {}): void {
    if (before.holdUntil !== after.holdUntil) {
      const change = { from: before.holdUntil ?? null, to: after.holdUntil ?? null }
      this.#route(contract, method, 'holdUntil', change)
    }
    const [from, to] = [before.delivery, after.delivery]
    if (from === to) return
    const keyChanged = from !== undefined && to !== undefined && from.key !== to.key
    if (keyChanged) this.plan.refusals.push(`${this.#pointerOf(contract, method)}/delivery/key`)
    if (from !== undefined && to === undefined) {
      this.removed.deliveries.push(deliveryId(contract, method, from.key))
    }
    const changed = from?.maxOpenBodies !== to?.maxOpenBodies || from?.stallTimeoutMs !== to?.stallTimeoutMs
    if (changed) this.#route(contract, method, 'delivery', { from: from ?? null, to: to ?? null })
  }

  #route(
    contract: string,
    method: string | undefined,
    setting: RouteChange['setting'],
    { from, to }: { readonly from: unknown; readonly to: unknown },
  ): void {
    const pointer = `${this.#pointerOf(contract, method)}/${setting}`
    this.plan.routes.push({ pointer, scope: scopeName(contract, method), setting, from, to })
  }

  /** Built for changes only: most scopes of a large configuration have none (`update.difference`). */
  #pointerOf(contract: string | undefined, method: string | undefined): string {
    if (contract === undefined) return '/global'
    if (contract !== this.#contract) {
      this.#contract = contract
      this.#pointer = `/contracts${pointerStep(contract)}`
    }
    return method === undefined ? this.#pointer : `${this.#pointer}/methods${pointerStep(method)}`
  }

  queue(before: QueueConfig | undefined, after: QueueConfig | undefined): void {
    for (const setting of QUEUE_SETTINGS) {
      const [from, to] = [before?.[setting] ?? null, after?.[setting] ?? null]
      if (from !== to) this.plan.queue.push({ setting, from, to })
    }
  }
}

function keyOf<T>(definition: T | undefined, key: (definition: T) => string): string | undefined {
  return definition === undefined ? undefined : key(definition)
}

/** The ids of both records, those of the candidate first, in document order. */
function idsOfBoth(before: object, after: object): readonly string[] {
  const ids = idsOf(after)
  if (before === after) return ids
  const gone = idsOf(before).filter((id) => !(id in after))
  return gone.length === 0 ? ids : [...ids, ...gone]
}
