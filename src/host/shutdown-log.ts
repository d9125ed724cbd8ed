import type { AdmissionCore } from '../admission-core.ts'
import type { CallCounts, ShutdownReport } from './shutdown-report.ts'

const NO_CALLS: CallCounts = { active: 0, queued: 0 }

/** What is written down on the way out, and read off the core at each turn of it. */
export class ShutdownLog {
  readonly #core: AdmissionCore
  readonly #errors: string[]
  #reason: string
  // When each phase was entered; Infinity: not yet.
  #beganAtMs: number
  #sealedAtMs: number
  #closingAtMs: number
  #atSignal: CallCounts
  #atSeal: CallCounts
  #waitersCut: number
  #refusedBefore: number

  constructor(core: AdmissionCore) {
    this.#core = core
    this.#errors = []
    this.#reason = ''
    this.#beganAtMs = Number.POSITIVE_INFINITY
    this.#sealedAtMs = Number.POSITIVE_INFINITY
    this.#closingAtMs = Number.POSITIVE_INFINITY
    this.#atSignal = NO_CALLS
    this.#atSeal = NO_CALLS
    this.#waitersCut = 0
    this.#refusedBefore = 0
  }

  get reason(): string {
    return this.#reason
  }

  /** Calls that run and that wait now. */
  counts(): CallCounts {
    const { active, queued } = this.#core.snapshot()
    return { active, queued: queued.calls }
  }

  began(reason: string, nowMs: number): void {
    this.#reason = reason
    this.#beganAtMs = nowMs
    this.#atSignal = this.counts()
    this.#refusedBefore = this.#refused()
  }

  sealed(nowMs: number): void {
    this.#sealedAtMs = nowMs
    this.#atSeal = this.counts()
  }

  /** What waits now is about to be refused. */
  closing(nowMs: number): void {
    this.#closingAtMs = nowMs
    this.#waitersCut = this.counts().queued
  }

  failed(what: string, error: unknown): void {
    this.#errors.push(`${what}: ${error instanceof Error ? error.message : String(error)}`)
  }

  /** `isForced`: a second signal ended it. `left`: calls that are still there. */
  report(isForced: boolean, left: CallCounts, sockets: number, endMs: number): ShutdownReport {
    const closingAtMs = Math.min(this.#closingAtMs, endMs)
    const sealedAtMs = Math.min(this.#sealedAtMs, closingAtMs)
    const atSeal = this.#sealedAtMs <= endMs ? this.#atSeal : left
    const cut = { active: left.active, queued: this.#waitersCut + left.queued, sockets }
    const isWhole = cut.active + cut.queued + cut.sockets === 0
    const outcome = isForced ? 'forced' : isWhole ? 'drained' : 'cut'
    return {
      reason: this.#reason,
      outcome,
      exitCode: outcome === 'drained' ? 0 : 1,
      atSignal: this.#atSignal,
      atSeal,
      finished: Math.max(0, atSeal.active + atSeal.queued - cut.active - cut.queued),
      refused: this.#refused() - this.#refusedBefore,
      cut,
      phases: {
        announcingMs: Math.round(sealedAtMs - this.#beganAtMs),
        finishingMs: Math.round(closingAtMs - sealedAtMs),
        closingMs: Math.round(endMs - closingAtMs),
      },
      totalMs: Math.round(endMs - this.#beganAtMs),
      errors: [...this.#errors],
    }
  }

  /** New calls refused so far because of draining or stop, and waiters refused by stop. */
  #refused(): number {
    const { draining, stopped } = this.#core.snapshot().totals.refused
    return draining + stopped - this.#waitersCut
  }
}
