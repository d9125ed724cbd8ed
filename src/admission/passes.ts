import { Heap } from '../heap.ts'
import type { Lane, Line } from './lane.ts'
import type { Waiter } from './waiter.ts'

/** After so many passes a permit of each of its scopes is kept for a waiter (ADM-6). */
export const MAX_PASSES = 64

/**
 * No waiter starves (ADM-6): counts how often room that a waiter lacked went to a newer call while it still lacked
 * another, and keeps a permit of each of its resources for the oldest of those passed too often.
 *
 * At most one waiter is protected, and `kept` is 1 at exactly its resources. A pass counts for all older waiters of a
 * lane, but only the oldest that has not been passed too often is a stranger, so each is visited at most 64 times.
 */
export class Passes {
  readonly #tooOften: Heap<Waiter>
  readonly #unkept: (line: Line) => void
  #protected: Waiter | null
  #grants: number

  /** `unkept` is told of lines whose kept permit is free for others again. */
  constructor(unkept: (line: Line) => void) {
    this.#tooOften = new Heap()
    this.#unkept = unkept
    this.#protected = null
    this.#grants = 0
  }

  get protected(): Waiter | null {
    return this.#protected
  }

  /**
   * Room of these lines went to the call of this arrival (Infinity: one that did not wait). Passed are the older
   * waiters that have lacked one of them and stand elsewhere, but for those that `isPending` says are only not yet
   * looked at.
   */
  count(lines: readonly Line[], arrival: number, isPending: (line: Line) => boolean): void {
    let passed: Lane[] | undefined // as a rule nobody: a lane's own first is newer than whom it passes
    for (const { strangers, fullUpTo } of lines) {
      const oldest = strangers.peek()
      if (oldest === undefined) continue
      const upTo = Math.min(arrival - 1, fullUpTo)
      if (oldest.rank > upTo) continue
      if (passed === undefined) this.#grants += 1
      const found = passed ?? []
      passed = found
      strangers.forEachUpTo(upTo, ({ lane }) => {
        if (isPending(lane.parkedAt.line)) return
        if (lane.passedByGrant !== this.#grants) found.push(lane)
        else if (lane.passedUpTo >= upTo) return
        lane.passedByGrant = this.#grants
        lane.passedUpTo = upTo
      })
    }
    if (passed !== undefined) for (const lane of passed) this.#note(lane)
  }

  /** One pass more for the waiters of a lane up to an arrival. */
  #note(lane: Lane): void {
    const { passes, passedUpTo } = lane
    let index = passes.length
    while (index > 0 && (passes[index - 1] ?? 0) > passedUpTo) index -= 1
    passes.splice(index, 0, passedUpTo)
    if (passes.length > MAX_PASSES) passes.shift()
    const tooOftenUpTo = passes.length === MAX_PASSES ? (passes[0] ?? 0) : 0
    const before = lane.passable
    let waiter = before
    for (; waiter !== null && waiter.arrival <= tooOftenUpTo; waiter = waiter.next) this.#tooOften.push(waiter)
    if (waiter === before) return
    lane.setPassable(waiter)
    this.#protectOldest()
  }

  /** A waiter has left the queue, its lane still stands; `next` is the one that came after it. */
  left(waiter: Waiter, next: Waiter | null): void {
    const { lane } = waiter
    if (lane.passable === waiter) lane.setPassable(next)
    if (waiter.heapIndex === -1) return
    this.#tooOften.remove(waiter)
    this.#protectOldest()
  }

  #protectOldest(): void {
    const oldest = this.#tooOften.peek() ?? null
    const before = this.#protected
    if (oldest === before) return
    this.#protected = oldest
    for (const { line } of before?.lane.spots ?? []) line.resource.kept = 0
    for (const { line } of oldest?.lane.spots ?? []) line.resource.kept = 1
    for (const { line } of before?.lane.spots ?? []) this.#unkept(line)
  }
}
