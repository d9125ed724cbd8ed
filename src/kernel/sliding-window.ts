import { assert } from '../assert.ts'
import type { SlidingWindowConfig } from '../config/types.ts'
import type { Rate } from './rate.ts'

/** Shared by every state from which nothing was taken yet, never written to. */
const NO_SEGMENTS: number[] = []

/**
 * `permitLimit` permits within the last `segmentsPerWindow` segments, on the grid of the first take (RAT-4).
 *
 * Segment `j` of a window starts `ceil(j · windowMs / segmentsPerWindow)` into it, so each window has the same borders
 * and a permit is free again exactly `windowMs` after the start of the segment it was taken in: that start is all
 * there is to remember. Only segments with permits are kept, oldest first, in a ring of (start, permits) pairs.
 *
 * Always `taken ≤ permitLimit`, `taken` is the sum over the ring, and starts rise. Segments that have left the window
 * are dropped by the next take, so asking changes nothing; between takes they are counted out.
 *
 * Memory: no ring before the first take; then it doubles as more segments are in use at once, 16 bytes for each, up to
 * the min(permitLimit, segmentsPerWindow) of them that there can be. Takes are O(1), amortized.
 */
export class SlidingWindow implements Rate {
  readonly config: SlidingWindowConfig
  #originMs: number // where the grid starts: instant of the first take, without meaning before it
  #newestMs: number // instant of the newest take, at first of the creation
  #ring: number[] // pairs: start of a segment in milliseconds, permits taken in it (≥ 1); empty before the first take
  #head: number // pair of the oldest segment
  #count: number // pairs in use; 0 only before the first take
  #taken: number // permits in those pairs

  constructor(config: SlidingWindowConfig, nowMs: number) {
    this.config = config
    this.#originMs = nowMs
    this.#newestMs = nowMs
    this.#ring = NO_SEGMENTS
    this.#head = 0
    this.#count = 0
    this.#taken = 0
  }

  /** O(1) unless `ahead` or segments that have left since the newest take make it look further: O(segments in use). */
  msUntilRoom(nowMs: number, ahead: number): number {
    const { permitLimit, windowMs } = this.config
    if (this.#taken + ahead < permitLimit) return 0
    const atMs = Math.max(nowMs, this.#newestMs)
    const left = this.#pairsLeftBy(atMs)
    let beyond = ahead - (permitLimit - this.#taken + this.#permitsIn(left))
    if (beyond < 0) return 0
    // From here on the limit is always used up, and each permit comes back a window after it came back last.
    const windows = Math.floor(beyond / permitLimit)
    beyond -= windows * permitLimit
    for (let nth = left; nth < this.#count; nth += 1) {
      beyond -= this.#permitsOf(nth)
      if (beyond < 0) return this.#startOf(nth) + windowMs - atMs + windows * windowMs
    }
    // The permits free right now go first to those ahead, in the segment of this instant.
    return this.#segmentStart(atMs) + windowMs - atMs + windows * windowMs
  }

  takeIfRoom(nowMs: number): boolean {
    assert(Number.isSafeInteger(nowMs), 'take at an instant that is not in whole milliseconds')
    const atMs = Math.max(nowMs, this.#newestMs)
    const left = this.#pairsLeftBy(atMs)
    if (this.#taken - this.#permitsIn(left) >= this.config.permitLimit) return false
    if (this.#count === 0) this.#originMs = atMs
    this.#drop(left)
    const startMs = this.#segmentStart(atMs)
    if (this.#count > 0 && this.#startOf(this.#count - 1) === startMs) {
      this.#ring[this.#slot(this.#count - 1) + 1] = this.#permitsOf(this.#count - 1) + 1
    } else {
      if (2 * this.#count === this.#ring.length) this.#grow()
      const slot = this.#slot(this.#count)
      this.#ring[slot] = startMs
      this.#ring[slot + 1] = 1
      this.#count += 1
    }
    this.#taken += 1
    this.#newestMs = atMs
    return true
  }

  remaining(nowMs: number): number {
    return this.config.permitLimit - this.#taken + this.#permitsIn(this.#pairsLeftBy(nowMs))
  }

  cleanAtMs(): number {
    return this.#count === 0 ? this.#newestMs : this.#startOf(this.#count - 1) + this.config.windowMs
  }

  /** How many of the oldest pairs are out of the window at `atMs`; none for an instant before the newest take. */
  #pairsLeftBy(atMs: number): number {
    let left = 0
    while (left < this.#count && this.#startOf(left) + this.config.windowMs <= atMs) left += 1
    return left
  }

  #permitsIn(pairs: number): number {
    let permits = 0
    for (let nth = 0; nth < pairs; nth += 1) permits += this.#permitsOf(nth)
    return permits
  }

  #drop(pairs: number): void {
    if (pairs === 0) return
    this.#taken -= this.#permitsIn(pairs)
    this.#head = this.#slot(pairs) / 2
    this.#count -= pairs
  }

  /** The first instant of the segment around `atMs`, exact: whole numbers below 2^53, as in `FixedWindow`. */
  #segmentStart(atMs: number): number {
    if (this.#ring.length === 0) return atMs
    const { windowMs, segmentsPerWindow } = this.config
    const windowStartMs = this.#originMs + Math.floor((atMs - this.#originMs) / windowMs) * windowMs
    const segment = Math.floor(((atMs - windowStartMs) * segmentsPerWindow) / windowMs)
    return windowStartMs + Math.ceil((segment * windowMs) / segmentsPerWindow)
  }

  #startOf(nth: number): number {
    return this.#at(this.#slot(nth))
  }

  #permitsOf(nth: number): number {
    return this.#at(this.#slot(nth) + 1)
  }

  /** Where the nth oldest pair starts in the ring; the one after the newest counts, too. */
  #slot(nth: number): number {
    const slot = 2 * (this.#head + nth)
    return slot < this.#ring.length ? slot : slot - this.#ring.length
  }

  #at(slot: number): number {
    const value = this.#ring[slot]
    assert(value !== undefined, 'a look beyond the ring of segments')
    return value
  }

  #grow(): void {
    const { permitLimit, segmentsPerWindow } = this.config
    const pairs = Math.min(Math.max(1, 2 * this.#count), permitLimit, segmentsPerWindow)
    assert(pairs > this.#count, 'more segments in use than a window has')
    const ring = new Array<number>(2 * pairs).fill(0) // exactly as long as asked for
    for (let nth = 0; nth < this.#count; nth += 1) {
      ring[2 * nth] = this.#startOf(nth)
      ring[2 * nth + 1] = this.#permitsOf(nth)
    }
    this.#ring = ring
    this.#head = 0
  }
}
