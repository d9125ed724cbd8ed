import type { Config, MethodConfig, QueueConfig } from '../config/types.ts'
import type { Concurrency } from '../kernel/concurrency.ts'
import { type Kernel, Staging } from '../kernel/kernel.ts'
import {
  ASKS_NOTHING,
  type Asks,
  type CallKeeper,
  type ContractRoutes,
  gateOf,
  type KeyedGate,
  Program,
  type QueuePolicy,
  Route,
} from './program.ts'

/** What compiling made: a program nobody sees yet, and what publishing it would change in the kernel. */
export interface Compiled {
  readonly program: Program
  readonly staging: Staging
}

/** One scope bound to its states, behind what the scopes above it ask. */
interface BoundScope extends Asks {
  readonly concurrency: Concurrency
}

/**
 * Binds a configuration to the kernel's states, so that its calls look nothing up (ADM-2). Changes nothing: new states
 * and new limits are only staged (PUB-5). O(rules).
 */
export function compile(config: Config, generation: number, kernel: Kernel, keeper: CallKeeper): Compiled {
  const staging = new Staging(kernel)
  const program = new Program(generation, config, queuePolicy(config.queue), keeper)
  const { unlimited } = staging
  const global = bindScope(
    staging,
    { ...ASKS_NOTHING, concurrency: unlimited },
    config.global ?? {},
    undefined,
    undefined,
  )
  const contracts = new Map<string, ContractRoutes>()
  for (const [id, contract] of Object.entries(config.contracts ?? {})) {
    const bound = bindScope(staging, global, contract, id, undefined)
    const slots = { global: global.concurrency, contract: bound.concurrency, method: unlimited }
    const methods = new Map<string, Route>()
    for (const [methodId, method] of Object.entries(contract.methods ?? {})) {
      const own = bindScope(staging, bound, method, id, methodId)
      methods.set(methodId, new Route(program, { ...slots, method: own.concurrency }, own))
    }
    contracts.set(id, { route: new Route(program, slots, bound), methods })
  }
  const slots = { global: global.concurrency, contract: unlimited, method: unlimited }
  program.bind(new Route(program, slots, global), contracts)
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
  let { resources, timed, keyed, gates } = above
  let concurrency = staging.unlimited
  // `concat` makes lists exactly as long as they are; pushing and spreading leave room to grow (`heap.rule`).
  if (limit !== undefined) {
    concurrency = staging.concurrency(contract, method, limit)
    resources = resources.concat(concurrency)
  }
  if (rate !== undefined) {
    const state = staging.rate(contract, method, rate)
    resources = resources.concat(state)
    timed = timed.concat(state)
  }
  if (gates !== null) gates = gates.concat(resources.slice(above.resources.length).map(gateOf))
  for (const [selector, partition] of Object.entries(partitions ?? {})) {
    const gate: KeyedGate = { kind: 'pool', pool: staging.pool(contract, method, selector, partition) }
    keyed = keyed.concat(gate)
    gates = (gates ?? resources.map(gateOf)).concat(gate)
  }
  return { concurrency, resources, timed, keyed, gates, holdUntil, delivery }
}
