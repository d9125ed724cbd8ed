/**
 * Admission control without a framework, on Web APIs only: for queues, sockets, jobs or other web frameworks.
 *
 * ```ts
 * import { AdmissionCore } from '@sluice/admission/core'
 *
 * const core = new AdmissionCore({ config: { global: { concurrency: 10 }, queue: { maxQueuedCalls: 100 } } })
 * const answer = await core.admit()
 * if (answer.kind === 'refused') console.log(answer.reason)
 * else answer.release()
 * ```
 *
 * @module
 */
export type { Answer } from './admission/admit.ts'
export type { Lease } from './admission/lease.ts'
export type { AdmissionCoreOptions, BoundRoute, Candidate, Published } from './admission-core.ts'
export { AdmissionCore } from './admission-core.ts'
export type { Call, DeclaredBytes, KeyFunction, KeyRecord, Selector } from './call.ts'
export type { Clock } from './clock.ts'
export { SystemClock } from './clock.ts'
export type { JsonSchema } from './config/json-schema.ts'
export { configJsonSchema } from './config/json-schema.ts'
export type { ParseOptions } from './config/parse.ts'
export { parseConfig } from './config/parse.ts'
export type {
  Config,
  ConfigInput,
  ContractConfig,
  ContractInput,
  DeliveryConfig,
  DeliveryInput,
  FixedWindowConfig,
  HoldUntil,
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
} from './config/types.ts'
export type { DrainOptions, StopReport } from './control/draining.ts'
export type { State } from './control/lifecycle.ts'
export type { PublicState, PublishEvent, PublishHook, WriteOptions } from './control/reporter.ts'
export type {
  DefinedLabels,
  DeliverySnapshot,
  GenerationSnapshot,
  PartitionsSnapshot,
  RateSnapshot,
  ScopeLabels,
  ScopeSnapshot,
  Snapshot,
} from './control/snapshot.ts'
export type { ConfigIssue } from './errors.ts'
export {
  AdmissionConfigError,
  AdmissionConflictError,
  AdmissionStateError,
  UnsupportedTransitionError,
} from './errors.ts'
export type { Plan, QueueChange, RouteChange, ScopeChange } from './program/plan.ts'
export type { RateStatus } from './program/rate-status.ts'
export type { Refusal, RefusalReason } from './refusal.ts'
