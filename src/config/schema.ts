import * as v from 'valibot'
import { MAX_TIMER_MS } from '../clock.ts'
import { idsOf } from './record-ids.ts'
import { show } from './show.ts'
import type {
  Config,
  ConfigInput,
  ContractConfig,
  ContractInput,
  DeliveryConfig,
  DeliveryInput,
  FixedWindowConfig,
  MethodConfig,
  MethodInput,
  PartitionConfig,
  PartitionInput,
  QueueConfig,
  QueueInput,
  RateConfig,
  ScopeConfig,
  ScopeInput,
  SlidingWindowConfig,
  TokenBucketConfig,
} from './types.ts'

/** Beyond this a timer fires at once. */
export const MAX_DURATION_MS: number = MAX_TIMER_MS
export const MAX_CONCURRENCY = 1_000_000 // permits
/** `tokenLimit`, `tokensPerPeriod`, `permitLimit`; times {@link MAX_DURATION_MS} it is still an exact integer (RAT-1). */
export const MAX_RATE_PERMITS = 1_000_000
export const MAX_SEGMENTS_PER_WINDOW = 1000
export const MAX_PARTITIONS = 1_000_000 // keys of one selector on one scope
export const MAX_OPEN_BODIES = 1_000_000 // of one key
export const MAX_QUEUED_CALLS = 1_000_000
export const MAX_BYTES: number = 2 ** 40 // 1 TiB
export const MAX_CONTRACTS = 10_000
export const MAX_METHODS = 10_000 // of one contract
export const MAX_METHODS_IN_TOTAL = 100_000
export const MAX_SELECTORS = 16 // that partition one scope
export const MAX_ID_LENGTH = 2048 // UTF-16 code units of a contract id, a method id or a selector name

export const DEFAULT_QUEUED_BYTES: number = 16 * 2 ** 20 // 16 MiB
export const DEFAULT_UNKNOWN_BODY_BYTES: number = 64 * 2 ** 10 // 64 KiB
export const DEFAULT_QUEUE_DELAY_MS = 1000
export const DEFAULT_PARTITIONS = 10_000
export const DEFAULT_IDLE_TIMEOUT_MS = 60_000
export const DEFAULT_STALL_TIMEOUT_MS = 30_000

/** Put on what `v.strictObject` takes: it has each setting of its type and no other. What it produces is declared. */
type Settings<T> = { readonly [K in keyof T]-?: v.GenericSchema }

function wanted(what: string): (issue: v.BaseIssue<unknown>) => string {
  return (issue) => `must be ${what}, got ${show(issue.input)}`
}

function whole(least: number, most: number): v.GenericSchema<number> {
  const message = wanted(`a whole number from ${least} to ${most}`)
  return v.pipe(v.number(message), v.integer(message), v.minValue(least, message), v.maxValue(most, message))
}

export function oneOf<const T extends readonly string[]>(names: T): v.GenericSchema<T[number]> {
  return v.picklist(names, wanted(names.map((name) => JSON.stringify(name)).join(' or ')))
}

function name(what: string): v.GenericSchema<string> {
  const message = wanted(`${what} of 1 to ${MAX_ID_LENGTH} characters`)
  return v.pipe(v.string(message), v.minLength(1, message), v.maxLength(MAX_ID_LENGTH, message))
}

function atMost(most: number, what: string): (issue: v.BaseIssue<unknown>) => string {
  return (issue) => `must have at most ${most} ${what}, got ${issue.received}`
}

const durationMs = whole(1, MAX_DURATION_MS)
const ratePermits = whole(1, MAX_RATE_PERMITS)
const idSchema = name('an id')

/** Where this very schema stands, as a value or for a record's keys, a selector of that name must exist (CFG-2). */
export const selectorNameSchema: v.GenericSchema<string> = name('the name of a key selector')

/** One for each algorithm: a schema alone may produce less than its declared type. */
const RATES = {
  'token-bucket': v.strictObject({
    algorithm: v.literal('token-bucket'),
    tokenLimit: ratePermits,
    tokensPerPeriod: ratePermits,
    replenishmentPeriodMs: durationMs,
  } satisfies Settings<TokenBucketConfig>),
  'fixed-window': v.strictObject({
    algorithm: v.literal('fixed-window'),
    permitLimit: ratePermits,
    windowMs: durationMs,
  } satisfies Settings<FixedWindowConfig>),
  'sliding-window': v.pipe(
    v.strictObject({
      algorithm: v.literal('sliding-window'),
      permitLimit: ratePermits,
      windowMs: durationMs,
      segmentsPerWindow: whole(1, MAX_SEGMENTS_PER_WINDOW),
    } satisfies Settings<SlidingWindowConfig>),
    v.forward(
      v.check(
        // Negated, because either may be missing or wrong here, which is an issue of its own.
        ({ segmentsPerWindow, windowMs }) => !(segmentsPerWindow > windowMs),
        ({ input: { segmentsPerWindow, windowMs } }) =>
          `must be a whole number from 1 to windowMs, here ${windowMs}, got ${segmentsPerWindow}`,
      ),
      ['segmentsPerWindow'],
    ),
    v.description('segmentsPerWindow is at most windowMs'), // JSON Schema has no other way to say it
  ),
} satisfies { readonly [A in RateConfig['algorithm']]: v.GenericSchema<Extract<RateConfig, { algorithm: A }>> }

export const rateSchema: v.GenericSchema<RateConfig> = v.variant('algorithm', [
  RATES['token-bucket'],
  RATES['fixed-window'],
  RATES['sliding-window'],
])

export const partitionSchema: v.GenericSchema<PartitionInput, PartitionConfig> = v.pipe(
  v.strictObject({
    maxPartitions: v.exactOptional(whole(1, MAX_PARTITIONS), DEFAULT_PARTITIONS),
    idleTimeoutMs: v.exactOptional(durationMs, DEFAULT_IDLE_TIMEOUT_MS),
    onPartitionLimit: v.exactOptional(oneOf(['evict', 'refuse']), 'evict'),
    concurrency: v.exactOptional(whole(0, MAX_CONCURRENCY)),
    rate: v.exactOptional(rateSchema),
  } satisfies Settings<PartitionConfig>),
  v.check(hasLimit, 'must have concurrency or rate or both'),
  v.metadata({ anyOf: [{ required: ['concurrency'] }, { required: ['rate'] }] }), // the same, for JSON Schema
)

export const deliverySchema: v.GenericSchema<DeliveryInput, DeliveryConfig> = v.strictObject({
  key: selectorNameSchema,
  maxOpenBodies: whole(1, MAX_OPEN_BODIES),
  stallTimeoutMs: v.exactOptional(durationMs, DEFAULT_STALL_TIMEOUT_MS),
} satisfies Settings<DeliveryConfig>)

const scopeSettings = {
  concurrency: v.exactOptional(whole(0, MAX_CONCURRENCY)),
  rate: v.exactOptional(rateSchema),
  partitions: v.exactOptional(
    v.pipe(
      v.record(selectorNameSchema, partitionSchema),
      v.maxEntries(MAX_SELECTORS, atMost(MAX_SELECTORS, 'selectors')),
    ),
  ),
} satisfies Settings<ScopeConfig>

const methodSettings = {
  ...scopeSettings,
  holdUntil: v.exactOptional(oneOf(['handler', 'body'])),
  delivery: v.exactOptional(deliverySchema),
} satisfies Settings<MethodConfig>

export const scopeSchema: v.GenericSchema<ScopeInput, ScopeConfig> = v.strictObject(scopeSettings)

export const methodSchema: v.GenericSchema<MethodInput, MethodConfig> = v.strictObject(methodSettings)

export const contractSchema: v.GenericSchema<ContractInput, ContractConfig> = v.strictObject({
  ...methodSettings,
  methods: v.exactOptional(
    v.pipe(v.record(idSchema, methodSchema), v.maxEntries(MAX_METHODS, atMost(MAX_METHODS, 'methods'))),
  ),
} satisfies Settings<ContractConfig>)

export const queueSchema: v.GenericSchema<QueueInput, QueueConfig> = v.strictObject({
  maxQueuedCalls: whole(0, MAX_QUEUED_CALLS),
  maxQueuedBytes: v.exactOptional(whole(0, MAX_BYTES), DEFAULT_QUEUED_BYTES),
  maxQueueDelayMs: v.exactOptional(whole(0, MAX_DURATION_MS), DEFAULT_QUEUE_DELAY_MS),
  queueOneWayCalls: v.exactOptional(v.boolean(wanted('true or false')), false),
  unknownBodyBytes: v.exactOptional(whole(0, MAX_BYTES), DEFAULT_UNKNOWN_BODY_BYTES),
} satisfies Settings<QueueConfig>)

/**
 * The whole configuration: what is valid, and what it becomes. `walk.ts` follows it, because valibot itself reports
 * only the first unknown key of an object, and loses record keys like `__proto__` (CFG-1, CFG-2).
 */
export const configSchema: v.GenericSchema<ConfigInput, Config> = v.strictObject({
  queue: v.exactOptional(queueSchema),
  global: v.exactOptional(scopeSchema),
  contracts: v.exactOptional(
    v.pipe(
      v.record(idSchema, contractSchema),
      v.maxEntries(MAX_CONTRACTS, atMost(MAX_CONTRACTS, 'contracts')),
      v.check(
        (contracts) => countMethods(contracts) <= MAX_METHODS_IN_TOTAL,
        ({ input }) => `must have at most ${MAX_METHODS_IN_TOTAL} methods in all contracts, got ${countMethods(input)}`,
      ),
    ),
  ),
} satisfies Settings<Config>)

function hasLimit(partition: PartitionConfig): boolean {
  return Object.hasOwn(partition, 'concurrency') || Object.hasOwn(partition, 'rate')
}

function countMethods(contracts: { readonly [contract: string]: ContractConfig }): number {
  let count = 0
  for (const id of idsOf(contracts)) count += idsOf(contracts[id]?.methods).length
  return count
}
