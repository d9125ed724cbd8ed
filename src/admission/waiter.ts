import type { HeapItem } from '../heap.ts'
import type { List, ListItem } from '../list.ts'
import type { Refusal } from '../refusal.ts'
import type { Lane } from './lane.ts'
import type { Lease } from './lease.ts'

type Resolve = (answer: Lease | Refusal) => void

/** Stands in until the promise has given its own, which it does while it is made. */
function unresolved(): void {}

/**
 * Hears when a signal aborts. Made before the waiter it is for: what the caller gave may be no signal, and throw, and
 * that must not cost a reservation (ADM-7).
 */
export class AbortListener {
  waiter: Waiter | null
  readonly #signal: AbortSignal
  readonly #heard: () => void

  constructor(signal: AbortSignal, cancel: (waiter: Waiter) => void) {
    this.waiter = null
    this.#signal = signal
    this.#heard = () => {
      if (this.waiter !== null) cancel(this.waiter)
    }
    signal.addEventListener('abort', this.#heard, { once: true })
  }

  stop(): void {
    this.waiter = null
    this.#signal.removeEventListener('abort', this.#heard)
  }
}

/**
 * A call in the queue: it owns one reservation, a place in its lane, and the promise that its caller holds.
 *
 *   waiting ──▶ admitted   dispatch found room for all it needs
 *      ├──────▶ refused    expired, aborted, stopped
 *
 * It leaves `waiting` once, when the queue unlinks it, so a grant to a waiter that is gone cannot happen (QUE-10).
 */
export class Waiter implements ListItem<Waiter>, HeapItem {
  readonly lane: Lane
  readonly bytes: number // declared bytes reserved
  readonly enqueuedAtMs: number
  /** Null once it has left. */
  list: List<Waiter> | null
  previous: Waiter | null
  next: Waiter | null
  /** Arrival number: older is less. */
  rank: number
  heapIndex: number // in the queue's heap of waiters that were passed too often
  /** What its caller holds. */
  readonly answered: Promise<Lease | Refusal>
  readonly #resolve: Resolve
  /** Null: nobody can abort it, or it has its answer and later aborts are ignored (RUN-2). */
  #listener: AbortListener | null

  constructor(lane: Lane, arrival: number, bytes: number, enqueuedAtMs: number, listener: AbortListener | null) {
    this.lane = lane
    this.bytes = bytes
    this.enqueuedAtMs = enqueuedAtMs
    this.list = null
    this.previous = null
    this.next = null
    this.rank = arrival
    this.heapIndex = -1
    this.#listener = listener
    if (listener !== null) listener.waiter = this
    let resolve: Resolve = unresolved
    this.answered = new Promise((own) => {
      resolve = own
    })
    this.#resolve = resolve
  }

  get arrival(): number {
    return this.rank
  }

  /** Both as captured at enqueue: no update moves it (QUE-3). */
  get deadlineAtMs(): number {
    return this.enqueuedAtMs + this.lane.delayMs
  }

  /** Has it not been answered yet? */
  get isWaiting(): boolean {
    return this.list !== null
  }

  /** Gives the caller its answer. Once, by the queue, after it has unlinked the waiter. */
  answer(answer: Lease | Refusal): void {
    if (this.#listener !== null) {
      this.#listener.stop()
      this.#listener = null
    }
    this.#resolve(answer)
  }
}
