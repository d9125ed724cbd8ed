import { Alarm } from '../alarm.ts'
import { type Clock, Timeline } from '../clock.ts'
import type { Upstreams } from './upstreams.ts'

/**
 * Ends leases and ejections on time when nothing is selected (GWY-6): a selection ends them by itself, but probes and
 * those who watch the lists must learn of it too. One timer however many upstreams; a heartbeat does not move it.
 */
export class LeaseTimer {
  readonly #upstreams: Upstreams
  readonly #alarm: Alarm
  #unsubscribe: (() => void) | null

  constructor(upstreams: Upstreams, clock: Clock) {
    this.#upstreams = upstreams
    this.#alarm = new Alarm(new Timeline(clock), (nowMs) => {
      upstreams.expire(nowMs)
      this.#alarm.setBy(upstreams.nextDueMs)
    })
    this.#unsubscribe = null
  }

  start(): void {
    this.#unsubscribe ??= this.#upstreams.onChange(() => this.#alarm.setBy(this.#upstreams.nextDueMs))
    this.#alarm.setBy(this.#upstreams.nextDueMs)
  }

  stop(): void {
    this.#unsubscribe?.()
    this.#unsubscribe = null
    this.#alarm.clear()
  }
}
