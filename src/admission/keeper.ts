import type { Timeline } from '../clock.ts'
import { Concurrency } from '../kernel/concurrency.ts'
import type { DeliveryKey } from '../kernel/delivery.ts'
import { Partition } from '../kernel/partitions.ts'
import type { QueueLedger } from '../kernel/queue-ledger.ts'
import type { CallKeeper, CallPartitions, Program } from '../program/program.ts'
import type { Route } from '../program/route.ts'
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

  /** All at once, then the waiters that now fit start, in the same turn (ADM-5) unless a batch is pending (QUE-11). */
  release(route: Route, partitions: CallPartitions): void {
    const { globalSlots, contractSlots, methodSlots, program } = route
    Concurrency.releaseEach(globalSlots, contractSlots, methodSlots)
    program.active -= 1
    if (partitions !== null) releaseKeyed(partitions)
    if (this.#ledger.calls > 0) this.#handOut(route, partitions)
    if (program.active === 0) this.#onLeft(program)
  }

  #handOut(route: Route, partitions: CallPartitions): void {
    if (this.#queue.takesOffers) this.#offer(route, partitions)
    this.#queue.handOut(this.#timeline.nowMs())
  }

  closeBody(place: DeliveryKey): void {
    place.close()
    if (place.waiting === 0) return
    this.#queue.offer(place)
    this.#queue.handOut(this.#timeline.nowMs())
  }

  #offer({ globalSlots, contractSlots, methodSlots }: Route, partitions: CallPartitions): void {
    this.#queue.offer(globalSlots)
    this.#queue.offer(contractSlots)
    this.#queue.offer(methodSlots)
    if (partitions instanceof Partition) this.#queue.offer(partitions)
    else for (const partition of partitions ?? []) this.#queue.offer(partition)
  }
}

function releaseKeyed(partitions: Partition | readonly Partition[]): void {
  if (partitions instanceof Partition) releaseOne(partitions)
  else for (const partition of partitions) releaseOne(partition)
}

function releaseOne(partition: Partition): void {
  partition.release()
  partition.pool.leave(partition)
}
