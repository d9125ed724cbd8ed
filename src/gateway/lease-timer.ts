import type { Clock } from '../clock.ts'
import type { Upstreams } from './upstreams.ts'

/**
 * Ends leases and ejections on time when nothing is selected (GWY-6): a selection ends them by itself, but probes and
 * those who watch the lists must learn of it too. One timer however many upstreams; a heartbeat does not move it.
 */
export class LeaseTimer {
  readonly #upstreams: Upstreams
  readonly #clock: Clock
  #unsubscribe: (() => void) | null
  #armedAtMs: number
  #cancelTimer: () => void

  constructor(upstreams: Upstreams, clock: Clock) {
    this.#upstreams = upstreams
    this.#clock = clock
    this.#unsubscribe = null
    this.#armedAtMs = Number.POSITIVE_INFINITY
    this.#cancelTimer = () => {}
  }

  start(): void {
    if (this.#unsubscribe !== null) return
    this.#unsubscribe = this.#upstreams.onChange(() => this.#arm())
    this.#arm()
  }

  stop(): void {
    this.#unsubscribe?.()
    this.#unsubscribe = null
    this.#cancelTimer()
    this.#armedAtMs = Number.POSITIVE_INFINITY
  }

  #arm(): void {
    const { nextDueMs } = this.#upstreams
    if (nextDueMs >= this.#armedAtMs) return
    this.#cancelTimer()
    this.#armedAtMs = nextDueMs
    this.#cancelTimer = this.#clock.callAt(nextDueMs, () => {
      this.#armedAtMs = Number.POSITIVE_INFINITY
      this.#upstreams.expire(this.#upstreams.nowMs())
      this.#arm()
    })
  }
}
