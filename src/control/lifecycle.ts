import { AdmissionStateError } from '../errors.ts'
import { type Refusal, refusal } from '../refusal.ts'

export type State = 'disabled' | 'enabled' | 'stopped'

const DRAINING: Refusal = Object.freeze(refusal('draining'))
const STOPPED: Refusal = Object.freeze(refusal('stopped'))

/**
 * Two dimensions that do not know each other, and what they mean for a new call:
 *
 *   disabled ──enable──▶ enabled        open ──drain({ announceMs })──▶ announcing ──time, or drain()──▶ sealed
 *      ▲──────disable──────┘ │           ▲ └──drain()───────────────────────────────────────────────────▶ │
 *      └───────stop──▶ stopped ◀─stop─   └────────────────────────resume()──────────────────────────────────┘
 *
 * `stopped` is final: every writer fails, drain and resume too, and `stopped` is the reason even while draining
 * (DRN-6). Only `resume` ends draining: enable, update and disable do not touch it (DRN-1). While announcing calls are
 * still admitted, and only readiness is off.
 */
export class Lifecycle {
  state: State
  drain: 'open' | 'announcing' | 'sealed'
  /** Answers every new call; null: calls are judged. */
  closed: Refusal | null
  readonly #onGuard: (isGuarded: boolean) => void

  /** `onGuard` is told whether there is more to a call than being judged: is it refused, or may it be time to seal? */
  constructor(onGuard: (isGuarded: boolean) => void = () => {}) {
    this.state = 'disabled'
    this.drain = 'open'
    this.closed = null
    this.#onGuard = onGuard
  }

  get draining(): boolean {
    return this.drain !== 'open'
  }

  get ready(): boolean {
    return this.drain === 'open' && this.state !== 'stopped'
  }

  /** @throws {AdmissionStateError} unless in that state; after stop for every action. */
  mustBe(state: State, action: string): void {
    if (this.state !== state) throw new AdmissionStateError(action, this.state)
  }

  /** @throws {AdmissionStateError} after stop. */
  mustRun(action: string): void {
    if (this.state === 'stopped') throw new AdmissionStateError(action, this.state)
  }

  announce(): void {
    this.drain = 'announcing'
    this.#onGuard(true)
  }

  seal(): void {
    this.drain = 'sealed'
    this.closed = DRAINING
    this.#onGuard(true)
  }

  resume(): void {
    this.drain = 'open'
    this.closed = null
    this.#onGuard(false)
  }

  /** Returns what waiters are refused with. */
  stop(): Refusal {
    this.state = 'stopped'
    this.closed = STOPPED
    this.#onGuard(true)
    return STOPPED
  }
}
