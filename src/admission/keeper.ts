import type { Timeline } from '../clock.ts'
import { Concurrency } from '../kernel/concurrency.ts'
import type { DeliveryKey } from '../kernel/delivery.ts'
import type { Partition } from '../kernel/partitions.ts'
import type { QueueLedger } from '../kernel/queue-ledger.ts'
import type { CallKeeper, Program, Route } from '../program/program.ts'
import type { Queue } from './queue.ts'

/** The way back: whatever a lease gives back comes here, exactly once, and goes to the waiters that it makes room for. */
export class Keeper implements CallKeeper {
  readonly #timeline: Timeline
  readonly #ledger: QueueLedger
  readonly #queue: Queue
  readonly #onLeft: (program: Program) => void

  constructor(timeline: Timeline, ledger: QueueLedger, queue: Queue, onLeft: (program: Program) => void) {
    this.#timeline = timeline
    this.#ledger = ledger
    this.#queue = queue
    this.#onLeft = onLeft
  }

  /** All at once, then the waiters that now fit start, in the same turn (ADM-5). */
  release(route: Route, partitions: readonly Partition[] | null): void {
    const { global, contract, method, program } = route
    Concurrency.releaseEach(global, contract, method)
    program.active -= 1
    if (partitions !== null) releaseEach(partitions)
    if (this.#ledger.calls > 0) {
      if (this.#queue.takesOffers) this.#offer(route, partitions)
      this.#queue.handOut(this.#timeline.nowMs())
    }
    if (program.active === 0) this.#onLeft(program)
  }

  closeBody(place: DeliveryKey): void {
    place.close()
    if (place.waiting === 0) return
    this.#queue.offer(place)
    this.#queue.handOut(this.#timeline.nowMs())
  }

  #offer({ global, contract, method }: Route, partitions: readonly Partition[] | null): void {
    this.#queue.offer(global)
    this.#queue.offer(contract)
    this.#queue.offer(method)
    for (const { concurrency } of partitions ?? []) if (concurrency !== null) this.#queue.offer(concurrency)
  }
}

function releaseEach(partitions: readonly Partition[]): void {
  // By index: an iterator is more code than the rest, and too much to be compiled into its callers (`core.partition`).
  for (let index = 0; index < partitions.length; index += 1) {
    const partition = partitions[index]
    if (partition === undefined) continue
    partition.concurrency?.release()
    partition.pool.leave(partition)
  }
}
