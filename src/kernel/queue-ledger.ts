import { assert } from '../assert.ts'

/**
 * Calls and declared bytes that wait, over all generations (QUE-1). One ledger for the whole server: bounds are those
 * of the arriving call's program (QUE-2), so a shrink evicts nobody and the ledger may stand above the newest bound.
 */
export class QueueLedger {
  #calls: number // waiters, ≥ 0
  #bytes: number // declared bytes, ≥ 0

  constructor() {
    this.#calls = 0
    this.#bytes = 0
  }

  get calls(): number {
    return this.#calls
  }

  get bytes(): number {
    return this.#bytes
  }

  /** One call and its bytes; the caller owes exactly one {@link unreserve} of as many. */
  reserve(bytes: number): void {
    assert(Number.isSafeInteger(bytes) && bytes >= 0, 'the bytes reserved are not a count')
    this.#calls += 1
    this.#bytes += bytes
  }

  unreserve(bytes: number): void {
    assert(this.#calls > 0 && this.#bytes >= bytes, 'a reservation is returned that nobody has')
    this.#calls -= 1
    this.#bytes -= bytes
    assert(this.#calls > 0 || this.#bytes === 0, 'bytes stay reserved without a waiter')
  }
}
