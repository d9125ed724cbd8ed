import type { Config, MethodConfig, QueueConfig } from '../config/types.ts'
import { type Kernel, Staging } from '../kernel/kernel.ts'
import type { Resource } from '../kernel/resource.ts'
import { atOnce, type Steps } from '../steps.ts'
import {
  ASKS_NOTHING,
  type Asks,
  type CallKeeper,
  type ContractRoutes,
  gateOf,
  type KeyedGate,
  limitedOf,
  Program,
  type QueuePolicy,
  Route,
  type Slots,
} from './program.ts'

/** What compiling made: a program nobody sees yet, and what publishing it would change in the kernel. */
export interface Compiled {
  readonly program: Program
  readonly staging: Staging
}

/** One scope bound to its states, behind what the scopes above it ask. */
interface BoundScope {
  readonly slots: Slots
  readonly asks: Asks
}

const SCOPES_PER_STEP = 4096

/**
 * Binds a configuration to the kernel's states, so that its calls look nothing up (ADM-2). Changes nothing: new states
 * and new limits are only staged (PUB-5). O(rules).
 */
export function compile(config: Config, generation: number, kernel: Kernel, keeper: CallKeeper): Compiled {
  return atOnce(compileSteps(config, generation, kernel, keeper))
}

export function* compileSteps(config: Config, generation: number, kernel: Kernel, keeper: CallKeeper): Steps<Compiled> {
  const staging = new Staging(kernel)
  const program = new Program(generation, config, queuePolicy(config.queue), keeper)
  const { unlimited } = staging
  const nothing = { slots: { global: unlimited, contract: unlimited, method: unlimited }, asks: ASKS_NOTHING }
  const global = bindScope(staging, nothing, config.global ?? {}, undefined, undefined)
  const contracts = new Map<string, ContractRoutes>()
  let scopes = 0
  // By `in`, for the records have no prototype, and `Object.entries` is slow with them (`update.compile`).
  for (const id in config.contracts) {
    const contract = config.contracts[id]
    if (contract === undefined) continue
    const bound = bindScope(staging, global, contract, id, undefined)
    const methods = new Map<string, Route>()
    for (const methodId in contract.methods) {
      const method = contract.methods[methodId]
      if (method === undefined) continue
      const { slots, asks } = bindScope(staging, bound, method, id, methodId)
      methods.set(methodId, new Route(program, slots, asks))
      scopes += 1
      if (scopes % SCOPES_PER_STEP === 0) yield
    }
    contracts.set(id, { route: new Route(program, bound.slots, bound.asks), methods })
    scopes += 1
    if (scopes % SCOPES_PER_STEP === 0) yield
  }
  program.bind(new Route(program, global.slots, global.asks), contracts)
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
  const { concurrency: limit } = scope
  const concurrency = limit === undefined ? staging.unlimited : staging.concurrency(contract, method, limit)
  const slots: Slots =
    contract === undefined
      ? { ...above.slots, global: concurrency }
      : method === undefined
        ? { global: above.slots.global, contract: concurrency, method: staging.unlimited }
        : { global: above.slots.global, contract: above.slots.contract, method: concurrency }
  return { slots, asks: asksOf(staging, above, slots, scope, contract, method) }
}

function asksOf(
  staging: Staging,
  above: BoundScope,
  slots: Slots,
  scope: MethodConfig,
  contract: string | undefined,
  method: string | undefined,
): Asks {
  const { concurrency, rate, partitions, holdUntil, delivery } = scope
  const { asks } = above
  const isPlain = rate === undefined && partitions === undefined && asks.resources === null
  // Most scopes only limit concurrency, which the slots say; so they share what is asked above them.
  if (isPlain && holdUntil === undefined && delivery === undefined) return asks
  const settings = {
    holdUntil: holdUntil ?? asks.holdUntil,
    delivery: delivery ? { config: delivery, places: staging.delivery(contract, method, delivery) } : asks.delivery,
  }
  if (isPlain) return { ...asks, ...settings }
  let { timed, keyed, gates } = asks
  const own: Resource[] = []
  if (concurrency !== undefined)
    own.push(method === undefined ? (contract === undefined ? slots.global : slots.contract) : slots.method)
  if (rate !== undefined) {
    const state = staging.rate(contract, method, rate)
    own.push(state)
    timed = [...timed, state]
  }
  const resources = [...(asks.resources ?? limitedOf(above.slots)), ...own]
  if (gates !== null) gates = [...gates, ...own.map(gateOf)]
  for (const [selector, partition] of Object.entries(partitions ?? {})) {
    const gate: KeyedGate = { kind: 'pool', pool: staging.pool(contract, method, selector, partition) }
    keyed = [...keyed, gate]
    gates = [...(gates ?? resources.map(gateOf)), gate]
  }
  return { resources, timed, keyed, gates, ...settings }
}
