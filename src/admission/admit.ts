import type { Call, Selector } from '../call.ts'
import type { Timeline } from '../clock.ts'
import type { QueueConfig } from '../config/types.ts'
import { Concurrency } from '../kernel/concurrency.ts'
import type { Partition } from '../kernel/partitions.ts'
import type { QueueLedger } from '../kernel/queue-ledger.ts'
import type { Resource } from '../kernel/resource.ts'
import type { Route } from '../program/route.ts'
import { ABORTED, type Refusal, type RefusalReason, refusal } from '../refusal.ts'
import { countRefusal, type Totals } from '../totals.ts'
import { type Holding, type Lease, PermitLease } from './lease.ts'
import {
  bytesOf,
  enterKeyed,
  type Keyed,
  keyAt,
  keysAsked,
  NONE,
  needsOf,
  resourcesOf,
  startKeyed,
  tooLateIn,
} from './needs.ts'
import { Overtaken } from './overtaken.ts'
import type { Queue } from './queue.ts'
import { AbortListener } from './waiter.ts'

export type Answer = Lease | Refusal | Promise<Lease | Refusal>
/** Null: the call has been overtaken. */
type Verdict = Answer | null

/**
 * Decides one call that the front has let in: ask every scope → take at all, or name the first that lacked room.
 *
 * Synchronous up to the answer; nothing is held while something else is asked, so nothing is ever rolled back (ADM-1).
 * A plain route with an empty queue reads no clock and allocates the lease only.
 */
export class Admission {
  readonly #timeline: Timeline
  readonly #ledger: QueueLedger
  readonly #queue: Queue
  readonly #totals: Totals
  readonly #selectors: ReadonlyMap<string, Selector>
  readonly overtaken: Overtaken

  constructor(
    timeline: Timeline,
    ledger: QueueLedger,
    queue: Queue,
    totals: Totals,
    selectors: ReadonlyMap<string, Selector>,
  ) {
    this.#timeline = timeline
    this.#ledger = ledger
    this.#queue = queue
    this.#totals = totals
    this.#selectors = selectors
    this.overtaken = new Overtaken()
  }

  admit(route: Route, call: Call): Verdict {
    const { signal } = call
    if (typeof signal === 'object' && signal.aborted) return this.#refuse(ABORTED)
    if (route.isPlain && this.#ledger.calls === 0) {
      const hasTaken = Concurrency.takeEach(route.globalSlots, route.contractSlots, route.methodSlots)
      return hasTaken ? this.#start(route, 0) : this.#judgeFull(route, call)
    }
    return route.keyed.length > 0 ? this.#judgeKeyed(route, call) : this.#judge(route, call)
  }

  /** Where nothing queues the answer is known, without a look at the clock. */
  #judgeFull(route: Route, call: Call): Verdict {
    return route.program.queue === null ? this.#refuseFull(route) : this.#judge(route, call)
  }

  #refuseFull({ globalSlots, contractSlots, methodSlots }: Route): Refusal {
    const lacking = globalSlots.hasRoom ? (contractSlots.hasRoom ? methodSlots : contractSlots) : globalSlots
    return this.#refuse(lacking.scope.refuse('concurrency'))
  }

  #judge(route: Route, call: Call): Verdict {
    const nowMs = this.#settledNowMs()
    // Nobody waits, so slots and rates can be asked as what they are: no order, no look at who is due (`core.rate`).
    if (this.#ledger.calls === 0 && route.hasRoomInSlots) {
      const lacking = route.takeOrLack(nowMs)
      return lacking === null ? this.#start(route, 0) : this.#decide(route, call, NONE, lacking, nowMs)
    }
    const { resources } = route
    let index = 0
    for (; index < resources.length; index += 1) {
      const resource = resources[index]
      if (resource !== undefined && !this.#queue.hasRoom(resource, nowMs)) break
    }
    return this.#decide(route, call, NONE, resources[index], nowMs)
  }

  #judgeKeyed(route: Route, call: Call): Verdict {
    const { onlyPool } = route
    if (onlyPool === null) return this.#askAll(route, call)
    const { changes } = this.overtaken
    const key = keyAt(onlyPool, call)
    if (this.overtaken.changes !== changes) return this.#overtake(route, call, [key])
    const nowMs = this.#settledNowMs()
    // As in `judge`: nobody waits, so there is no order.
    if (this.#ledger.calls === 0 && key !== undefined) {
      const partition = onlyPool.pool.findRoomy(key, nowMs)
      if (partition !== undefined && route.takeIfRoom(nowMs)) return this.#startIn(route, partition, nowMs)
    }
    return this.#judgeGates(route, call, [key], nowMs)
  }

  /** Selectors are the caller's code and may admit or release calls themselves: all are asked before anything is judged. */
  #askAll(route: Route, call: Call): Verdict {
    const { changes } = this.overtaken
    const keys = route.keyed.map((gate) => keyAt(gate, call))
    if (this.overtaken.changes !== changes) return this.#overtake(route, call, keys)
    return this.#judgeGates(route, call, keys, this.#settledNowMs())
  }

  /** Its selectors have published, disabled, drained or stopped; they are not asked again. */
  #overtake({ keyed }: Route, call: Call, keys: readonly (string | undefined)[]): null {
    return this.overtaken.keep(call, { keys: keysAsked(keyed, keys, call, this.#selectors) })
  }

  #judgeGates(route: Route, call: Call, keys: readonly (string | undefined)[], nowMs: number): Verdict {
    const needs = needsOf(route, keys, this.#queue, nowMs)
    if ('kind' in needs) return this.#refuse(needs)
    const { keyed, lacking } = needs
    if (lacking === undefined && this.#ledger.calls === 0) return this.#take(route, keyed, nowMs)
    return this.#decide(route, call, keyed, lacking, nowMs)
  }

  /** The request's one clock reading. Whoever is due something at that instant has it before the call is judged. */
  #settledNowMs(): number {
    const nowMs = this.#timeline.nowMs()
    if (this.#ledger.calls > 0) this.#queue.settle(nowMs)
    return nowMs
  }

  /** Everything has been asked; `lacking` is the first that lacked room. */
  #decide(route: Route, call: Call, keyed: Keyed, lacking: Resource | undefined, nowMs: number): Verdict {
    const { queue } = route.program
    if (lacking === undefined) return this.#decideRoomy(route, call, keyed, nowMs)
    if (queue === null) return this.#refuse(this.#lacks(lacking, nowMs))
    return this.#enqueue(route, queue, call, keyed, lacking, false, nowMs)
  }

  #decideRoomy(route: Route, call: Call, keyed: Keyed, nowMs: number): Verdict {
    const { queue } = route.program
    const resources = resourcesOf(route, keyed)
    const behind = queue === null ? undefined : this.#queue.inBacklog(resources)
    if (queue === null || behind === undefined) return this.#takeAmongWaiters(route, keyed, resources, nowMs)
    return this.#enqueue(route, queue, call, keyed, behind, true, nowMs)
  }

  #takeAmongWaiters(route: Route, keyed: Keyed, resources: readonly Resource[], nowMs: number): Lease {
    if (this.#ledger.calls > 0) this.#queue.beforePass(resources, nowMs)
    const lease = this.#take(route, keyed, nowMs)
    if (this.#ledger.calls > 0) this.#queue.newcomerTook(resources, nowMs)
    return lease
  }

  /** One step: a newcomer must not see a permit that is half taken (ADM-1). */
  #take(route: Route, keyed: Keyed, nowMs: number): Lease {
    const { partitions, place } = keyed
    route.take(nowMs)
    if (partitions === null && place === null) return this.#start(route, 0)
    enterKeyed(keyed, nowMs)
    startKeyed(keyed, nowMs)
    return this.#start(route, { partitions, waitedMs: 0, place, permits: true })
  }

  /** The call has taken what needs no key, and takes its one partition, which most calls with a key have (`core.partition`). */
  #startIn(route: Route, partition: Partition, nowMs: number): Lease {
    partition.pool.enter(partition, nowMs)
    partition.start(nowMs)
    return this.#start(route, partition)
  }

  #start(route: Route, held: Holding): Lease {
    route.program.active += 1
    this.#totals.admitted += 1
    return new PermitLease(route, held)
  }

  /**
   * Order of reasons: one-way, rate, calls, bytes (ADM-10); the signal is touched last, when the call queues (RUN-2).
   * To read one of them may run the caller's code, after which the call may be overtaken.
   *
   * `behind` is what the call would wait for. If only its turn is lacking there is room for everybody who waits and for
   * this call, too: it starts where it may not wait (QUE-11).
   */
  #enqueue(
    route: Route,
    policy: QueueConfig,
    call: Call,
    keyed: Keyed,
    behind: Resource,
    lacksTurnOnly: boolean,
    nowMs: number,
  ): Verdict {
    const before = this.#happened()
    const oneWay = policy.queueOneWayCalls ? undefined : call.oneWay
    if (this.#happened() !== before) return this.overtaken.keep(call, { oneWay })
    if (oneWay === true) {
      if (this.#roomHasCome(behind, lacksTurnOnly, nowMs)) return this.overtaken.keep(call, { oneWay })
      return this.#turnAway(route, keyed, behind, 'one_way', lacksTurnOnly, nowMs)
    }
    const tooLate = route.isPlain ? undefined : tooLateIn(resourcesOf(route, keyed), policy, nowMs)
    if (tooLate !== undefined) return this.#refuse(tooLate)
    if (this.#ledger.calls >= policy.maxQueuedCalls) {
      if (this.#roomHasCome(behind, lacksTurnOnly, nowMs)) return this.overtaken.keep(call, askedOf(policy, oneWay, {}))
      return this.#turnAway(route, keyed, behind, 'queue_calls', lacksTurnOnly, nowMs)
    }
    const declared = call.bytes ?? 0
    const bytes = bytesOf(declared, policy)
    if (this.#happened() !== before) return this.overtaken.keep(call, askedOf(policy, oneWay, { bytes: declared }))
    if (bytes > 0 && this.#ledger.bytes + bytes > policy.maxQueuedBytes) {
      if (this.#roomHasCome(behind, lacksTurnOnly, nowMs)) {
        return this.overtaken.keep(call, askedOf(policy, oneWay, { bytes: declared }))
      }
      return this.#turnAway(route, keyed, behind, 'queue_bytes', lacksTurnOnly, nowMs)
    }
    const signal = typeof call.signal === 'function' ? call.signal() : call.signal
    if (this.#happened() !== before || this.#roomHasCome(behind, lacksTurnOnly, nowMs)) {
      return this.overtaken.keep(call, askedOf(policy, oneWay, { bytes: declared, signal }))
    }
    if (signal?.aborted === true) return this.#refuse(ABORTED)
    const listener = signal === undefined ? null : this.#listenTo(signal)
    if (keyed !== NONE) enterKeyed(keyed, nowMs)
    return this.#queue.enqueue(route, keyed, bytes, listener, nowMs)
  }

  /** What is read of a call may release another and make room, which is not among what {@link #happened}. */
  #roomHasCome(behind: Resource, lacksTurnOnly: boolean, nowMs: number): boolean {
    return !lacksTurnOnly && this.#queue.hasRoom(behind, nowMs)
  }

  // Apart, so that only calls with a signal pay for the closure (`queue.release`).
  #listenTo(signal: AbortSignal): AbortListener {
    return new AbortListener(signal, (waiter) => this.#queue.abort(waiter))
  }

  #turnAway(
    route: Route,
    keyed: Keyed,
    behind: Resource,
    reason: RefusalReason,
    lacksTurnOnly: boolean,
    nowMs: number,
  ): Answer {
    if (lacksTurnOnly) return this.#takeAmongWaiters(route, keyed, resourcesOf(route, keyed), nowMs)
    return this.#refuse(behind.scope.refuse(reason))
  }

  #lacks(resource: Resource, nowMs: number): Refusal {
    if (!resource.timed) return resource.scope.refuse(resource.reason)
    return refusal(resource.reason, resource.scope.name, resource.msUntilRoom(nowMs, resource.waiting))
  }

  /** What a call that is being judged must not miss, but for releases; anything more than before is another number. */
  #happened(): number {
    return this.#totals.admitted + this.#totals.queued + this.overtaken.changes
  }

  #refuse(answer: Refusal): Refusal {
    countRefusal(this.#totals, answer.reason)
    return answer
  }
}

/** What a call has been asked before it waits; one-way only where that matters. */
function askedOf(policy: QueueConfig, oneWay: boolean | undefined, read: Call): Call {
  return policy.queueOneWayCalls ? read : { ...read, oneWay }
}
