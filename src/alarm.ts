import type { Timeline } from './clock.ts'

/**
 * At most one host timer, for the earliest of many instants. It may ring early, never late: an instant that moves away
 * leaves the timer where it is, and whoever is woken sets it again, so that waiters that come and go start no timers.
 */
export class Alarm {
  readonly #timeline: Timeline
  readonly #rung: () => void
  #atMs: number // Infinity: not set
  #cancel: (() => void) | null

  constructor(timeline: Timeline, ring: (nowMs: number) => void) {
    this.#timeline = timeline
    this.#rung = () => {
      this.#atMs = Number.POSITIVE_INFINITY
      this.#cancel = null
      ring(timeline.nowMs())
    }
    this.#atMs = Number.POSITIVE_INFINITY
    this.#cancel = null
  }

  /** Rings at `atMs` or earlier. */
  setBy(atMs: number): void {
    if (atMs >= this.#atMs) return
    this.clear()
    this.#atMs = atMs
    this.#cancel = this.#timeline.callAt(atMs, this.#rung)
  }

  clear(): void {
    if (this.#cancel === null) return
    this.#cancel()
    this.#cancel = null
    this.#atMs = Number.POSITIVE_INFINITY
  }
}
