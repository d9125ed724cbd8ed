/**
 * The configuration, written out (a type inferred from a schema cannot be exported with isolated declarations). Each
 * valibot schema in `schema.ts` is declared to produce its type here, so the two cannot drift apart (CFG-3).
 */

/** Fills continuously, `tokensPerPeriod` tokens every `replenishmentPeriodMs`, up to `tokenLimit` (RAT-4). */
export interface TokenBucketConfig {
  readonly algorithm: 'token-bucket'
  readonly tokenLimit: number
  readonly tokensPerPeriod: number
  readonly replenishmentPeriodMs: number
}

/** `permitLimit` permits in each window of `windowMs`; the first window starts at the first call (RAT-1). */
export interface FixedWindowConfig {
  readonly algorithm: 'fixed-window'
  readonly permitLimit: number
  readonly windowMs: number
}

/** `permitLimit` permits in any `windowMs`, counted in `segmentsPerWindow` segments on the grid of the first call. */
export interface SlidingWindowConfig {
  readonly algorithm: 'sliding-window'
  readonly permitLimit: number
  readonly windowMs: number
  readonly segmentsPerWindow: number
}

export type RateConfig = TokenBucketConfig | FixedWindowConfig | SlidingWindowConfig

/** Limits for each key that the selector of the same name returns. Needs `concurrency` or `rate` or both. */
export interface PartitionConfig {
  /** Keys kept at once; default 10 000. */
  readonly maxPartitions: number
  /** A key without calls or rate debt is forgotten after this long; default 60 000. */
  readonly idleTimeoutMs: number
  /** At `maxPartitions`, may an idle key that still has rate debt make room (PAR-4)? Default `evict`. */
  readonly onPartitionLimit: 'evict' | 'refuse'
  readonly concurrency?: number
  readonly rate?: RateConfig
}

/** What one scope limits; absent is unlimited, `concurrency: 0` is closed. */
export interface ScopeConfig {
  readonly concurrency?: number
  readonly rate?: RateConfig
  readonly partitions?: { readonly [selector: string]: PartitionConfig }
}

/** Until when permits are held: until the handler is done, or until the response body has ended (REL-1, REL-2). */
export type HoldUntil = 'handler' | 'body'

/** A bound on streamed response bodies that are still open, by key (REL-3). */
export interface DeliveryConfig {
  /** A key selector registered in code. */
  readonly key: string
  readonly maxOpenBodies: number
  /** A body from which nothing was taken for this long is errored; default 30 000. */
  readonly stallTimeoutMs: number
}

export interface MethodConfig extends ScopeConfig {
  readonly holdUntil?: HoldUntil
  readonly delivery?: DeliveryConfig
}

export interface ContractConfig extends MethodConfig {
  readonly methods?: { readonly [method: string]: MethodConfig }
}

export interface QueueConfig {
  /** 0: nothing queues. */
  readonly maxQueuedCalls: number
  /** Declared bytes of all waiters together; default 16 MiB. 0: nothing queues. */
  readonly maxQueuedBytes: number
  /** Default 1000. 0: nothing queues. */
  readonly maxQueueDelayMs: number
  /** May one-way calls wait? Default false. */
  readonly queueOneWayCalls: boolean
  /** What a body of undeclared length reserves; default 64 KiB. */
  readonly unknownBodyBytes: number
}

/** A validated configuration with every default filled in: plain JSON, frozen, its records without a prototype. */
export interface Config {
  readonly queue?: QueueConfig
  readonly global?: ScopeConfig
  readonly contracts?: { readonly [contract: string]: ContractConfig }
}

type Input<T, Defaulted extends keyof T> = Omit<T, Defaulted> & { readonly [K in Defaulted]?: T[K] }

export type PartitionInput = Input<PartitionConfig, 'maxPartitions' | 'idleTimeoutMs' | 'onPartitionLimit'>
export type DeliveryInput = Input<DeliveryConfig, 'stallTimeoutMs'>
export type QueueInput = Input<
  QueueConfig,
  'maxQueuedBytes' | 'maxQueueDelayMs' | 'queueOneWayCalls' | 'unknownBodyBytes'
>
export interface ScopeInput {
  readonly concurrency?: number
  readonly rate?: RateConfig
  readonly partitions?: { readonly [selector: string]: PartitionInput }
}
export interface MethodInput extends ScopeInput {
  readonly holdUntil?: HoldUntil
  readonly delivery?: DeliveryInput
}
export interface ContractInput extends MethodInput {
  readonly methods?: { readonly [method: string]: MethodInput }
}
/** What users write: a {@link Config} whose defaults may be left out. */
export interface ConfigInput {
  readonly queue?: QueueInput
  readonly global?: ScopeInput
  readonly contracts?: { readonly [contract: string]: ContractInput }
}
