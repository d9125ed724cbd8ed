import type { RefusalReason } from '../refusal.ts'
import type { Scope } from './scope.ts'

/**
 * Anything a call needs one of in order to start: a concurrency permit, a rate permit or a place for a body, of a scope or of one
 * partition of it. Asking spends nothing; all that a call needs is taken in one synchronous step (ADM-1).
 */
export interface Resource {
  readonly scope: Scope
  /** Why a call is refused when this lacks room. */
  readonly reason: RefusalReason
  /** Does room come with time alone? Else only an event brings it. */
  readonly timed: boolean
  /** Waiters that need this, whether or not it is what they lack. The queue counts them. */
  waiting: number
  /** The queue's own record of who waits for this, kept here so that finding it is one load (`queue.release`). */
  line: object | null
  /** 1 while one is kept for a waiter that was passed too often; for nobody else there is one less. The queue's, too. */
  kept: 0 | 1
  /** Milliseconds until there is one for us after `ahead` others; 0 is now, Infinity is "an event will tell". */
  msUntilRoom(nowMs: number, ahead: number): number
  /** Takes one. The caller has seen `msUntilRoom(nowMs, 0) === 0` in this same turn. */
  take(nowMs: number): void
}
