/** Why a call may not run; the README's table gives each its meaning and status (API-2). */
export type RefusalReason =
  | 'concurrency'
  | 'rate'
  | 'partition_concurrency'
  | 'partition_rate'
  | 'partition_limit'
  | 'queue_calls'
  | 'queue_bytes'
  | 'queue_timeout'
  | 'one_way'
  | 'delivery'
  | 'draining'
  | 'stopped'
  | 'aborted'

/** The answer to a call that may not run: data, never thrown, frozen, without a stack. */
export interface Refusal {
  readonly kind: 'refused'
  readonly reason: RefusalReason
  /** Name of the scope that lacked room; absent for `stopped`, `draining` and `aborted` (ADM-10). */
  readonly scope?: string
  /** When a rate is why: the least whole number of milliseconds after which a retry can succeed (RAT-2). */
  readonly retryAfterMs?: number
}

/** Builds a refusal with one shape; done once per reason and scope where no time has to be computed. */
export function refusal(reason: RefusalReason, scope?: string, retryAfterMs?: number): Refusal {
  // The one kind that is made anew for each call: at once, or its properties would be in a second object (`core.refuse`).
  if (scope !== undefined && retryAfterMs !== undefined) return { kind: 'refused', reason, scope, retryAfterMs }
  const refused: { kind: 'refused'; reason: RefusalReason; scope?: string; retryAfterMs?: number } = {
    kind: 'refused',
    reason,
  }
  if (scope !== undefined) refused.scope = scope
  if (retryAfterMs !== undefined) refused.retryAfterMs = retryAfterMs
  return refused
}

/** Whose signal is aborted is refused by the same word wherever that is noticed. */
export const ABORTED: Refusal = Object.freeze(refusal('aborted'))
