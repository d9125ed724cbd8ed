import { assert } from '../assert.ts'
import type { FixedWindowConfig } from '../config/types.ts'
import type { Rate } from './rate.ts'

/**
 * `permitLimit` permits in each window, windows side by side from the first take on, also through idle time (RAT-4).
 *
 * Always `used ≤ permitLimit`; `used` is 0 only before the first take, and the grid does not exist until then.
 * Around the border of two windows up to twice the limit can be taken within one `windowMs`.
 */
export class FixedWindow implements Rate {
  readonly config: FixedWindowConfig
  #startMs: number // first instant of the window of the newest take; without meaning while used is 0
  #newestMs: number // instant of the newest take, at first of the creation
  #used: number // permits taken in that window

  constructor(config: FixedWindowConfig, nowMs: number) {
    this.config = config
    this.#startMs = nowMs
    this.#newestMs = nowMs
    this.#used = 0
  }

  msUntilRoom(nowMs: number, ahead: number): number {
    const { permitLimit, windowMs } = this.config
    const atMs = Math.max(nowMs, this.#newestMs)
    const beyond = ahead - this.#freeAt(atMs)
    if (beyond < 0) return 0
    return this.#startAt(atMs) + windowMs - atMs + Math.floor(beyond / permitLimit) * windowMs
  }

  takeIfRoom(nowMs: number): boolean {
    assert(Number.isSafeInteger(nowMs), 'take at an instant that is not in whole milliseconds')
    const atMs = Math.max(nowMs, this.#newestMs)
    const free = this.#freeAt(atMs)
    if (free <= 0) return false
    this.#startMs = this.#startAt(atMs)
    this.#newestMs = atMs
    this.#used = this.config.permitLimit - free + 1
    return true
  }

  remaining(nowMs: number): number {
    return this.#freeAt(Math.max(nowMs, this.#newestMs))
  }

  cleanAtMs(): number {
    return this.#used === 0 ? this.#newestMs : this.#startMs + this.config.windowMs
  }

  /** Permits free at an instant not before the newest take. */
  #freeAt(atMs: number): number {
    const isSameWindow = atMs - this.#startMs < this.config.windowMs
    return isSameWindow ? this.config.permitLimit - this.#used : this.config.permitLimit
  }

  /** The first instant of the window around `atMs`; before the first take a window would start right there. */
  #startAt(atMs: number): number {
    if (this.#used === 0) return atMs
    const { windowMs } = this.config
    // Exact: a quotient of whole numbers below 2^53 is never rounded up to the next whole one.
    return this.#startMs + Math.floor((atMs - this.#startMs) / windowMs) * windowMs
  }
}
