import { assert } from '../assert.ts'
import type { RefusalReason } from '../refusal.ts'
import type { Resource } from './resource.ts'
import type { Scope } from './scope.ts'

/** A limit that no count reaches: stands in for "absent", so that the hot path has no branch for it. Permits. */
export const UNLIMITED: number = 2 ** 30

/**
 * Permits of one scope, or of one partition: how many calls may run, and how many do.
 *
 * That of a scope lives in the kernel and is shared by every generation that names the scope (STA-1), so a resize acts at
 * once and counts whoever is running (CON-1). `active > limit` happens only after a shrink; nothing is taken until it is below
 * again (CON-2).
 */
export class Concurrency implements Resource {
  readonly scope: Scope
  waiting: number // waiters, ≥ 0
  line: object | null
  kept: 0 | 1
  /** Of a scope: does the current program name it? If not, it goes once nobody holds or awaits a permit (STA-3). */
  named: boolean
  // Last, next to what a partition adds: what every call looks at lies together (`core.partition`).
  limit: number // permits, ≥ 0; 0 is closed
  active: number // permits, ≥ 0

  constructor(scope: Scope, limit: number) {
    this.scope = scope
    this.waiting = 0
    this.line = null
    this.kept = 0
    this.named = false
    this.limit = limit
    this.active = 0
  }

  get reason(): RefusalReason {
    return 'concurrency'
  }

  get timed(): false {
    return false
  }

  get hasRoom(): boolean {
    return this.active < this.limit
  }

  msUntilRoom(_nowMs: number, ahead: number): number {
    return this.active + ahead < this.limit ? 0 : Number.POSITIVE_INFINITY
  }

  /** Takes one permit of each, or none: checked and taken in one step, so nothing is taken without room. */
  static takeEach(first: Concurrency, second: Concurrency, third: Concurrency): boolean {
    if (first.active >= first.limit || second.active >= second.limit || third.active >= third.limit) return false
    first.active += 1
    second.active += 1
    third.active += 1
    return true
  }

  /** Takes one permit. The caller has seen room in this same turn and owes exactly one {@link release}. */
  take(): void {
    assert(this.active < this.limit, 'a permit is taken without room')
    this.active += 1
  }

  /** Returns one permit of each. */
  static releaseEach(first: Concurrency, second: Concurrency, third: Concurrency): void {
    assert(first.active > 0 && second.active > 0 && third.active > 0, 'permits are released that nobody holds')
    first.active -= 1
    second.active -= 1
    third.active -= 1
  }

  release(): void {
    assert(this.active > 0, 'a permit is released that nobody holds')
    this.active -= 1
  }
}
