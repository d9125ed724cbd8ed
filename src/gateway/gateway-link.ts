import { unreachable } from '../assert.ts'
import type { Clock } from '../clock.ts'
import { classifyFetchFailure } from './connect-errors.ts'
import { type RegistryClient, RegistryError } from './registry-client.ts'
import type { UpstreamEvent } from './upstream-events.ts'
import type { AppliedEvent } from './upstreams.ts'

/** When a failed announcement is repeated: from `firstMs`, doubling up to `maxMs`, each times 0.5 to 1. */
export interface Backoff {
  readonly firstMs: number
  readonly maxMs: number
}

/** An announcement that failed, for logs. */
export interface AnnouncementFailure {
  /** URL of the registry. */
  readonly gateway: string
  readonly event: UpstreamEvent['type']
  readonly error: unknown
  /** When it is tried again; null: another process has taken the id over, and this one says no more. */
  readonly retryInMs: number | null
}

/** While draining, the first time between two questions whether something is under way yet; it doubles. Milliseconds. */
const FIRST_QUESTION_MS = 50

/** What the instance wants a gateway to know of it; `idle`: it says nothing. */
export type Wish = 'idle' | 'up' | 'draining' | 'gone'

/** What the gateway was told, as far as is known; `maybe`: a register whose answer was lost. */
export type Told = 'nothing' | 'maybe' | 'up' | 'draining'

/** What a link needs to know of its instance. */
export interface LinkParts {
  readonly url: string
  readonly client: RegistryClient
  readonly clock: Clock
  readonly random: () => number
  readonly heartbeatMs: number
  readonly backoff: Backoff
  /** The event by which this instance says `type`. */
  readonly eventOf: (type: UpstreamEvent['type']) => UpstreamEvent
  readonly onProgress: () => void
  readonly onFailure: (failure: AnnouncementFailure) => void
}

/**
 * What one gateway has been told, brought in line with what the instance wants it to know (GWY-7).
 *
 * ```
 *   wish \ told   nothing        maybe          up             draining
 *   up            register       register       heartbeat      register
 *   draining      (settled)      draining       draining       heartbeat
 *   gone          (settled)      offline        offline        offline
 * ```
 *
 * One request at a time, so that a register can never overtake a later draining. A heartbeat that is answered 404 has
 * told nothing: the gateway was restarted, or the lease expired. One that is answered without the marker while the wish
 * is `draining` tells it again.
 */
export class GatewayLink {
  readonly #parts: LinkParts
  #wish: Wish
  #told: Told
  #underWay: number // requests that the gateway has sent here and whose body has not ended, as it said last
  #questions: number // whether that is over, since the draining
  #failures: number // in a row
  #lastError: unknown
  #isSending: boolean
  #controller: AbortController
  #cancelTimer: () => void

  constructor(parts: LinkParts) {
    this.#parts = parts
    this.#wish = 'idle'
    this.#told = 'nothing'
    this.#underWay = 0
    this.#questions = 0
    this.#failures = 0
    this.#lastError = undefined
    this.#isSending = false
    this.#controller = new AbortController()
    this.#cancelTimer = () => {}
  }

  get url(): string {
    return this.#parts.url
  }

  get told(): Told {
    return this.#told
  }

  get failures(): number {
    return this.#failures
  }

  /** Of the last failure, until something succeeds. */
  get lastError(): unknown {
    return this.#lastError
  }

  /** Whether the gateway knows what it should; then at most heartbeats are left to say. */
  get isSettled(): boolean {
    if (this.#wish === 'up') return this.#told === 'up'
    if (this.#wish === 'draining') return this.#told === 'draining' || this.#told === 'nothing'
    return this.#wish === 'idle' || this.#told === 'nothing'
  }

  /** Settled and, of one that drains, nothing is under way to the instance any more. */
  get isQuiet(): boolean {
    return this.isSettled && (this.#told !== 'draining' || this.#underWay === 0)
  }

  want(wish: 'up' | 'draining' | 'gone'): void {
    if (this.#wish === wish) return
    // A draining or offline that failed may have been applied: only a fresh register is sure to undo it.
    if (wish === 'up' && this.#told === 'up') this.#told = 'maybe'
    this.#wish = wish
    this.#questions = 0
    this.#failures = 0
    this.#cancelTimer()
    this.#speak()
  }

  /** Says no more, and gives up what is under way. */
  silence(): void {
    this.#wish = 'idle'
    this.#told = 'nothing'
    this.#cancelTimer()
    this.#controller.abort()
    this.#controller = new AbortController()
  }

  /** Says what is next, unless something is under way already. */
  #speak(): void {
    if (this.#isSending) return
    const type = this.#next()
    if (type === null) return
    this.#isSending = true
    const { client, eventOf } = this.#parts
    const before = { wish: this.#wish, told: this.#told }
    // From now until the answer the gateway may know, so an offline in the meantime has something to take back.
    if (type === 'register') this.#told = 'maybe'
    client.send([eventOf(type)], this.#controller.signal).then(
      ({ events }) => this.#heard(type, events[0]),
      (error: unknown) => this.#failed(type, before, error),
    )
  }

  #next(): UpstreamEvent['type'] | null {
    switch (this.#wish) {
      case 'idle':
        return null
      case 'up':
        return this.#told === 'up' ? 'heartbeat' : 'register'
      case 'draining':
        if (this.#told === 'nothing') return null
        return this.#told === 'draining' ? 'heartbeat' : 'draining'
      case 'gone':
        return this.#told === 'nothing' ? null : 'offline'
      default:
        return unreachable(this.#wish)
    }
  }

  #heard(type: UpstreamEvent['type'], answer: AppliedEvent | undefined): void {
    this.#isSending = false
    this.#failures = 0
    this.#lastError = undefined
    if (this.#wish === 'idle') return
    if (type === 'register') this.#told = 'up'
    if (type === 'draining') this.#told = 'draining'
    if (type === 'heartbeat' && this.#told === 'draining' && answer?.draining === false) this.#told = 'maybe'
    if (type === 'offline') this.#told = 'nothing'
    this.#underWay = answer?.active ?? 0
    this.#goOn()
  }

  #failed(type: UpstreamEvent['type'], before: { readonly wish: Wish; readonly told: Told }, error: unknown): void {
    this.#isSending = false
    if (this.#wish === 'idle') return
    const { status, reason } = error instanceof RegistryError ? error : { status: 500, reason: null }
    // Refused, or not even sent: for certain not applied. Any other failure leaves that open.
    if (status < 500 || classifyFetchFailure(error) === 'unsent') this.#told = before.told
    if (reason === 'unknown_upstream' || reason === 'stale_generation') this.#told = 'nothing'
    // A process that took the id over speaks for it from now on.
    if (reason === 'stale_generation') this.#wish = 'idle'
    const hasChangedMind = this.#wish !== 'idle' && this.#wish !== before.wish
    if (hasChangedMind || reason === 'unknown_upstream') {
      this.#goOn()
      return
    }
    this.#failures += 1
    this.#lastError = error
    const retryInMs = this.#wish === 'idle' ? null : this.#backoffMs()
    this.#parts.onFailure({ gateway: this.#parts.url, event: type, error, retryInMs })
    if (retryInMs === null) this.#parts.onProgress()
    else this.#speakIn(retryInMs)
  }

  /** After an answer: what is left to say at once, or the next heartbeat. */
  #goOn(): void {
    this.#parts.onProgress()
    const next = this.#next()
    if (next === 'heartbeat') this.#speakIn(this.#heartbeatInMs())
    else if (next !== null) this.#speak()
  }

  #heartbeatInMs(): number {
    const { heartbeatMs, random } = this.#parts
    const usualMs = Math.round(heartbeatMs * (0.9 + 0.1 * random()))
    if (this.#wish !== 'draining' || this.isQuiet) return usualMs
    const questionMs = FIRST_QUESTION_MS * 2 ** Math.min(30, this.#questions)
    this.#questions += 1
    return Math.min(usualMs, questionMs)
  }

  #speakIn(delayMs: number): void {
    const { clock } = this.#parts
    this.#cancelTimer()
    this.#cancelTimer = clock.callAt(clock.nowMs() + delayMs, () => this.#speak())
  }

  #backoffMs(): number {
    const { backoff, random } = this.#parts
    // The exponent is bounded, or a long outage would make the product infinite.
    const fullMs = Math.min(backoff.maxMs, backoff.firstMs * 2 ** Math.min(30, this.#failures - 1))
    return Math.round(fullMs * (0.5 + 0.5 * random()))
  }
}
