import { assert } from '../assert.ts'
import type { Selector } from '../call.ts'
import { idsOf } from '../config/record-ids.ts'
import type { Config, ContractConfig, MethodConfig, QueueConfig } from '../config/types.ts'
import { type Kernel, Staging } from '../kernel/kernel.ts'
import { atOnce, SCOPES_PER_STEP, type Steps } from '../steps.ts'
import type { BoundContract, BoundScope } from './bound-scopes.ts'
import { type CallKeeper, Program } from './program.ts'

/** What compiling made: a program nobody sees yet, and what publishing it would change in the kernel. */
export interface Compiled {
  readonly program: Program
  readonly staging: Staging
}

/** What a program is made with besides its configuration; making it changes none of it. */
export interface Workshop {
  readonly kernel: Kernel
  readonly keeper: CallKeeper
  /** Every selector that a configuration may name. */
  readonly selectors: ReadonlyMap<string, Selector>
}

/** What scopes are bound to. */
interface Supplies {
  readonly staging: Staging
  readonly selectors: ReadonlyMap<string, Selector>
}

const EMPTY: MethodConfig = Object.freeze({})

/**
 * Binds a configuration to the kernel's states, so that its calls look nothing up there (ADM-2). Changes nothing: new
 * states and new limits are only staged (PUB-5).
 *
 * Scopes whose configuration is the very object that the source has keep the source's binding: while the source is
 * current, its states are named and have its limits (STA-1). O(contracts), and O(rules) of the contracts that changed.
 */
export function compile(config: Config, generation: number, workshop: Workshop, source?: Program): Compiled {
  return atOnce(compileSteps(config, generation, workshop, source))
}

export function* compileSteps(
  config: Config,
  generation: number,
  { kernel, keeper, selectors }: Workshop,
  source?: Program,
): Steps<Compiled> {
  const staging = new Staging(kernel)
  const supplies = { staging, selectors }
  const scopes = {
    none: { config: EMPTY, concurrency: kernel.unlimited, extras: null },
    global: bindScope(supplies, source?.scopes.global, config.global ?? EMPTY, undefined, undefined),
    contracts: yield* bindContracts(supplies, source, config.contracts),
  }
  return { program: new Program(generation, config, queuePolicy(config.queue), keeper, scopes), staging }
}

function queuePolicy(queue: QueueConfig | undefined): QueueConfig | null {
  if (queue === undefined) return null
  return queue.maxQueuedCalls === 0 || queue.maxQueuedBytes === 0 || queue.maxQueueDelayMs === 0 ? null : queue
}

function* bindContracts(
  supplies: Supplies,
  source: Program | undefined,
  configs: Config['contracts'],
): Steps<ReadonlyMap<string, BoundContract>> {
  if (source !== undefined && source.config.contracts === configs) return source.scopes.contracts
  const contracts = new Map<string, BoundContract>()
  let scopes = 0
  for (const id of idsOf(configs)) {
    const config = configs?.[id]
    if (config === undefined) continue
    const before = source?.scopes.contracts.get(id)
    if (before?.own.config === config) {
      contracts.set(id, before)
    } else {
      const own = bindScope(supplies, before?.own, config, id, undefined)
      const methods = yield* bindMethods(supplies, before, config, id)
      contracts.set(id, { own, methods })
      scopes += methods.size
    }
    scopes += 1
    if (scopes < SCOPES_PER_STEP) continue
    scopes = 0
    yield
  }
  return contracts
}

function* bindMethods(
  supplies: Supplies,
  before: BoundContract | undefined,
  contract: ContractConfig,
  contractId: string,
): Steps<ReadonlyMap<string, BoundScope>> {
  const methods = new Map<string, BoundScope>()
  const { methods: configs } = contract
  for (const id of idsOf(configs)) {
    const config = configs?.[id]
    if (config === undefined) continue
    methods.set(id, bindScope(supplies, before?.methods.get(id), config, contractId, id))
    if (methods.size % SCOPES_PER_STEP === 0) yield
  }
  return methods
}

function bindScope(
  supplies: Supplies,
  before: BoundScope | undefined,
  config: MethodConfig,
  contract: string | undefined,
  method: string | undefined,
): BoundScope {
  if (before?.config === config) return before
  const { staging } = supplies
  const { concurrency: limit, rate, partitions, holdUntil, delivery } = config
  const concurrency = limit === undefined ? staging.unlimited : staging.concurrency(contract, method, limit)
  // All but few of ten thousand scopes: told apart first (`update.compile`).
  if (rate === undefined && partitions === undefined && holdUntil === undefined && delivery === undefined) {
    return { config, concurrency, extras: null }
  }
  const extras = {
    rate: rate && staging.rate(contract, method, rate),
    pools: Object.entries(partitions ?? {}).map(([name, its]) => ({
      pool: staging.pool(contract, method, name, its),
      select: selectorOf(supplies, name),
    })),
    holdUntil,
    delivery: delivery && {
      config: delivery,
      places: staging.delivery(contract, method, delivery),
      select: selectorOf(supplies, delivery.key),
    },
  }
  return { config, concurrency, extras }
}

function selectorOf({ selectors }: Supplies, name: string): Selector {
  const selector = selectors.get(name)
  assert(selector !== undefined, 'a scope names a selector that is not registered') // parsing has refused it (CFG-2)
  return selector
}
