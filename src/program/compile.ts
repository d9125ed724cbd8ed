import type { Config, HoldUntil, MethodConfig, QueueConfig } from '../config/types.ts'
import type { Concurrency } from '../kernel/concurrency.ts'
import { type Kernel, Staging } from '../kernel/kernel.ts'
import { scopeName } from '../kernel/scope.ts'
import {
  type BoundDelivery,
  type CallKeeper,
  type ContractRoutes,
  type Gate,
  Program,
  type QueuePolicy,
  Route,
} from './program.ts'

/** What compiling made: a program nobody sees yet, and what publishing it would change in the kernel. */
export interface Compiled {
  readonly program: Program
  readonly staging: Staging
}

/** One scope bound to its states, with the gates and names of the scopes above it already in front. */
interface BoundScope {
  readonly concurrency: Concurrency
  readonly gates: readonly Gate[]
  readonly scopes: readonly string[]
  /** A method's own setting replaces its contract's. */
  readonly holdUntil: HoldUntil | undefined
  readonly delivery: BoundDelivery | undefined
}

/**
 * Binds a configuration to the kernel's states, so that its calls look nothing up (ADM-2). Changes nothing: new states
 * and new limits are only staged (PUB-5). O(rules).
 */
export function compile(config: Config, generation: number, kernel: Kernel, keeper: CallKeeper): Compiled {
  const staging = new Staging(kernel)
  const program = new Program(generation, config, queuePolicy(config.queue), keeper)
  const { unlimited } = staging
  const root: BoundScope = { concurrency: unlimited, gates: [], scopes: [], holdUntil: undefined, delivery: undefined }
  const global = bindScope(staging, root, config.global ?? {}, undefined, undefined)
  const contracts = new Map<string, ContractRoutes>()
  for (const [id, contract] of Object.entries(config.contracts ?? {})) {
    const bound = bindScope(staging, global, contract, id, undefined)
    const slots = { global: global.concurrency, contract: bound.concurrency, method: unlimited }
    const methods = new Map<string, Route>()
    for (const [methodId, method] of Object.entries(contract.methods ?? {})) {
      const own = bindScope(staging, bound, method, id, methodId)
      methods.set(methodId, new Route(program, { ...slots, method: own.concurrency }, own.gates, own.scopes, own))
    }
    const route = new Route(program, slots, bound.gates, bound.scopes, bound)
    contracts.set(id, { route, methods })
  }
  const slots = { global: global.concurrency, contract: unlimited, method: unlimited }
  program.bind(new Route(program, slots, global.gates, global.scopes, {}), contracts)
  return { program, staging }
}

function queuePolicy(queue: QueueConfig | undefined): QueuePolicy | null {
  if (queue === undefined) return null
  return queue.maxQueuedCalls === 0 || queue.maxQueuedBytes === 0 || queue.maxQueueDelayMs === 0 ? null : queue
}

function bindScope(
  staging: Staging,
  above: BoundScope,
  scope: MethodConfig,
  contract: string | undefined,
  method: string | undefined,
): BoundScope {
  const { concurrency: limit, rate, partitions, holdUntil = above.holdUntil } = scope
  const delivery =
    scope.delivery === undefined
      ? above.delivery
      : { config: scope.delivery, places: staging.delivery(contract, method, scope.delivery) }
  if (limit === undefined && rate === undefined && partitions === undefined) {
    return { concurrency: staging.unlimited, gates: above.gates, scopes: above.scopes, holdUntil, delivery }
  }
  const gates = [...above.gates]
  const scopes = [...above.scopes]
  const name = scopeName(contract, method)
  if (limit !== undefined || rate !== undefined) scopes.push(name)
  let concurrency = staging.unlimited
  if (limit !== undefined) {
    concurrency = staging.concurrency(contract, method, limit)
    gates.push({ kind: 'resource', resource: concurrency })
  }
  if (rate !== undefined) gates.push({ kind: 'resource', resource: staging.rate(contract, method, rate) })
  for (const [selector, partition] of Object.entries(partitions ?? {})) {
    gates.push({ kind: 'pool', pool: staging.pool(contract, method, selector, partition) })
    scopes.push(`${name}#${selector}`)
  }
  return { concurrency, gates, scopes, holdUntil, delivery }
}
