import type { RateConfig } from '../config/types.ts'
import type { RefusalReason } from '../refusal.ts'
import { createRate } from './create-rate.ts'
import { type Rate, take } from './rate.ts'
import type { Resource } from './resource.ts'
import type { Scope } from './scope.ts'

/** The rate of one scope, or of one partition. That of a scope is kept by scope and definition, so it outlives a time when admission is disabled (STA-2). */
export class ScopedRate implements Resource {
  readonly scope: Scope
  readonly reason: RefusalReason
  readonly rate: Rate
  waiting: number // waiters, ≥ 0
  line: object | null
  kept: 0 | 1
  /** Of a scope: does the current program name this rate? If not, it is kept until a new one would behave the same (RAT-4). */
  named: boolean

  constructor(scope: Scope, reason: RefusalReason, config: RateConfig, nowMs: number) {
    this.scope = scope
    this.reason = reason
    this.rate = createRate(config, nowMs)
    this.waiting = 0
    this.line = null
    this.kept = 0
    this.named = false
  }

  get timed(): true {
    return true
  }

  msUntilRoom(nowMs: number, ahead: number): number {
    return this.rate.msUntilRoom(nowMs, ahead)
  }

  take(nowMs: number): void {
    take(this.rate, nowMs)
  }

  takeIfRoom(nowMs: number): boolean {
    return this.rate.takeIfRoom(nowMs)
  }
}
