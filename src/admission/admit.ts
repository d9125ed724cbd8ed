import type { Timeline } from '../clock.ts'
import type { DeliveryKey } from '../kernel/delivery.ts'
import type { Partition } from '../kernel/partitions.ts'
import type { QueueLedger } from '../kernel/queue-ledger.ts'
import type { Resource } from '../kernel/resource.ts'
import type { CallKeeper, Gate, Program, QueuePolicy, Route } from '../program/program.ts'
import { type Refusal, refusal } from '../refusal.ts'
import type { Totals } from '../totals.ts'
import type { Call, Selector } from './call.ts'
import { type Lease, PermitLease } from './lease.ts'
import type { Queue } from './queue.ts'

const ABORTED: Refusal = Object.freeze(refusal('aborted'))

export type Answer = Lease | Refusal | Promise<Lease | Refusal>

/** What a call needs on its route, gathered while judging it; partitions that are new are not in their pools yet. */
interface Needs {
  readonly resources: Resource[]
  readonly partitions: Partition[]
  place: DeliveryKey | null
  /** The first that lacked room; undefined: the call may start. */
  lacking: Resource | undefined
}

/**
 * Decides one call: capture → ask every scope → take at all, or name the first that lacked room.
 *
 * Synchronous up to the answer; nothing is held while something else is asked, so nothing is ever rolled back (ADM-1).
 * A plain route with an empty queue reads no clock and allocates the lease only.
 */
export class Admission implements CallKeeper {
  readonly #timeline: Timeline
  readonly #ledger: QueueLedger
  readonly #queue: Queue
  readonly #totals: Totals
  readonly #selectors: ReadonlyMap<string, Selector>
  readonly #onLeft: (program: Program) => void

  constructor(
    timeline: Timeline,
    ledger: QueueLedger,
    queue: Queue,
    totals: Totals,
    selectors: ReadonlyMap<string, Selector>,
    onLeft: (program: Program) => void,
  ) {
    this.#timeline = timeline
    this.#ledger = ledger
    this.#queue = queue
    this.#totals = totals
    this.#selectors = selectors
    this.#onLeft = onLeft
  }

  admit(route: Route, call: Call): Answer {
    const { signal } = call
    if (typeof signal === 'object' && signal.aborted) return this.#refuse(ABORTED)
    if (route.isPlain && this.#ledger.calls === 0) {
      const { global, contract, method, program } = route
      if (global.hasRoom && contract.hasRoom && method.hasRoom) {
        global.take()
        contract.take()
        method.take()
        program.active += 1
        this.#totals.admitted += 1
        return new PermitLease(route, null)
      }
      if (program.queue === null) {
        const lacking = global.hasRoom ? (contract.hasRoom ? method : contract) : global
        return this.#refuse(lacking.scope.refuse('concurrency'))
      }
    }
    return this.#judge(route, call)
  }

  /** While disabled: nothing is asked and nothing is held (ADM-11). */
  admitOpen({ signal }: Call, open: Lease): Answer {
    if (typeof signal === 'object' && signal.aborted) return this.#refuse(ABORTED)
    this.#totals.admitted += 1
    return open
  }

  /** All at once, then the waiters that now fit start, in the same turn (ADM-5). By the lease, exactly once. */
  release(route: Route, partitions: readonly Partition[]): void {
    const { global, contract, method, program } = route
    global.release()
    contract.release()
    method.release()
    program.active -= 1
    for (const partition of partitions) {
      partition.concurrency?.release()
      partition.pool.leave(partition)
    }
    if (this.#ledger.calls > 0) this.#offer(route, partitions)
    if (program.active === 0) this.#onLeft(program)
  }

  closeBody(place: DeliveryKey): void {
    place.close()
    if (place.waiting === 0) return
    this.#queue.offer(place)
    this.#queue.settle(this.#timeline.nowMs())
  }

  #offer({ global, contract, method }: Route, partitions: readonly Partition[]): void {
    this.#queue.offer(global)
    this.#queue.offer(contract)
    this.#queue.offer(method)
    for (const { concurrency } of partitions) if (concurrency !== null) this.#queue.offer(concurrency)
    this.#queue.settle(this.#timeline.nowMs())
  }

  #judge(route: Route, call: Call): Answer {
    // Selectors are the caller's code and may admit or release calls themselves: all are asked before anything is judged.
    const keys = route.gates.map((gate) => this.#keyAt(gate, call))
    const nowMs = this.#timeline.nowMs()
    if (this.#ledger.calls > 0) this.#queue.settle(nowMs)
    const needs: Needs = { resources: [], partitions: [], place: null, lacking: undefined }
    const policy = route.program.queue
    for (const [index, gate] of route.gates.entries()) {
      const id = keys[index]
      if (gate.kind === 'resource') this.#need(needs, gate.resource, nowMs)
      else if (gate.kind === 'delivery') {
        if (id === undefined) continue
        needs.place = gate.places.find(id)
        this.#need(needs, needs.place, nowMs)
        // Never queues: who does not read what he has must not make others wait (REL-6).
        if (needs.lacking !== undefined) return this.#refuse(needs.place.scope.refuse('delivery'))
      } else {
        const { pool } = gate
        if (id === undefined) continue
        const partition = pool.find(id, nowMs)
        // Room for an entry cannot be waited for: what would be waited in is the entry itself.
        if (!pool.canHold(partition, nowMs)) return this.#refuse(pool.scope.refuse('partition_limit'))
        needs.partitions.push(partition)
        if (partition.concurrency !== null) this.#need(needs, partition.concurrency, nowMs)
        if (partition.rate !== null) this.#need(needs, partition.rate, nowMs)
      }
      if (needs.lacking !== undefined && policy === null) return this.#refuse(this.#lacks(needs.lacking, nowMs))
    }
    const { lacking } = needs
    if (policy === null) {
      return lacking === undefined ? this.#take(route, needs, nowMs) : this.#refuse(this.#lacks(lacking, nowMs))
    }
    const behind = lacking ?? this.#queue.inBacklog(needs.resources)
    if (behind === undefined) return this.#take(route, needs, nowMs)
    return this.#enqueue(route, policy, call, needs, behind, nowMs)
  }

  #need(needs: Needs, resource: Resource, nowMs: number): void {
    needs.resources.push(resource)
    if (needs.lacking !== undefined) return
    if (resource.msUntilRoom(nowMs, this.#queue.aheadOfNewcomer(resource)) > 0) needs.lacking = resource
  }

  /** One step: a newcomer must not see a permit that is half taken (ADM-1). */
  #take(route: Route, { resources, partitions, place }: Needs, nowMs: number): Lease {
    if (this.#ledger.calls > 0) this.#queue.beforePass(resources, nowMs)
    for (const resource of resources) resource.take(nowMs)
    for (const partition of partitions) partition.pool.enter(partition, nowMs)
    place?.places.enter(place)
    route.takeUnlimited()
    route.program.active += 1
    this.#totals.admitted += 1
    if (this.#ledger.calls > 0) this.#queue.passedBy(resources, nowMs)
    const isPlain = partitions.length === 0 && place === null
    return new PermitLease(route, isPlain ? null : { partitions, waitedMs: 0, place, permits: true })
  }

  /** Order of reasons: one-way, rate, calls, bytes (ADM-10); the signal is touched last, when the call queues (RUN-2). */
  #enqueue(route: Route, policy: QueuePolicy, call: Call, needs: Needs, lacking: Resource, nowMs: number): Answer {
    const { scope } = lacking
    const { admitted, queued } = this.#totals
    const turnAway = (answer: Refusal): Answer =>
      // Only its turn is lacking: there is room for everybody who waits and for this call, too (QUE-11).
      needs.lacking === undefined ? this.#take(route, needs, nowMs) : this.#refuse(answer)
    const oneWay = policy.queueOneWayCalls ? undefined : call.oneWay
    if (oneWay === true) return turnAway(scope.refuse('one_way'))
    for (const resource of needs.resources) {
      if (!resource.timed) continue
      // At the deadline itself a waiter expires before it is granted (QUE-12), so room at that instant is too late.
      const waitMs = resource.msUntilRoom(nowMs, resource.waiting)
      if (waitMs >= policy.maxQueueDelayMs) return this.#refuse(refusal(resource.reason, resource.scope.name, waitMs))
    }
    if (this.#ledger.calls >= policy.maxQueuedCalls) return turnAway(scope.refuse('queue_calls'))
    const declared = call.bytes ?? 0
    const bytes = declared === 'unknown' ? policy.unknownBodyBytes : declared
    // Before anything is entered: a caller's mistake must not cost a permit (ADM-7).
    if (!Number.isSafeInteger(bytes) || bytes < 0) {
      throw new RangeError(`Cannot queue the call: bytes must be a whole number, 0 or more, got ${bytes}`)
    }
    if (bytes > 0 && this.#ledger.bytes + bytes > policy.maxQueuedBytes) {
      return turnAway(scope.refuse('queue_bytes'))
    }
    const signal = typeof call.signal === 'function' ? call.signal() : call.signal
    if (signal?.aborted === true) return this.#refuse(ABORTED)
    // So far the call's getters were the caller's code, which may have admitted, queued or released: then judge anew.
    const isOvertaken = this.#totals.admitted !== admitted || this.#totals.queued !== queued
    if (isOvertaken || this.#hasRoom(needs, nowMs)) {
      return this.#judge(route, { keys: call.keys, oneWay, bytes, signal })
    }
    const { resources, partitions, place } = needs
    for (const partition of partitions) partition.pool.enter(partition, nowMs)
    place?.places.enter(place)
    return this.#queue.enqueue({ route, policy, resources, partitions, place, bytes, signal }, nowMs)
  }

  /** Has what was lacking got room since it was asked? */
  #hasRoom({ lacking }: Needs, nowMs: number): boolean {
    return lacking !== undefined && lacking.msUntilRoom(nowMs, this.#queue.aheadOfNewcomer(lacking)) === 0
  }

  #lacks(resource: Resource, nowMs: number): Refusal {
    if (!resource.timed) return resource.scope.refuse(resource.reason)
    return refusal(resource.reason, resource.scope.name, resource.msUntilRoom(nowMs, resource.waiting))
  }

  #keyAt(gate: Gate, call: Call): string | undefined {
    if (gate.kind === 'resource') return undefined
    const { keys } = call
    const { selector } = gate.kind === 'pool' ? gate.pool : gate.places
    if (keys === undefined) return this.#selectors.get(selector)?.(call)
    if (typeof keys === 'function') return keys(selector)
    return Object.hasOwn(keys, selector) ? keys[selector] : undefined
  }

  #refuse(answer: Refusal): Refusal {
    this.#totals.refused[answer.reason] += 1
    return answer
  }
}
