import type { Call, DeclaredBytes, KeyFunction, KeyRecord, Selector } from '../call.ts'
import type { QueueConfig } from '../config/types.ts'
import type { DeliveryKey } from '../kernel/delivery.ts'
import type { Partition } from '../kernel/partitions.ts'
import type { Resource } from '../kernel/resource.ts'
import type { KeyedGate, Route } from '../program/route.ts'
import { type Refusal, refusal } from '../refusal.ts'
import type { Queue } from './queue.ts'

/** What of a call's needs depends on its keys. New partitions and places are not in their pools yet. */
export interface Keyed {
  readonly partitions: readonly Partition[] | null // null: none
  readonly place: DeliveryKey | null
}

/** Of most calls. */
export const NONE: Keyed = { partitions: null, place: null }

/** The key of a call at a gate; undefined leaves it unpartitioned there (PAR-3). This is the caller's code. */
export function keyAt(gate: KeyedGate, call: Call): string | undefined {
  if (!isAsked(gate, call)) return undefined
  const { keys } = call
  // Bound with the scope, for most calls have no keys of their own: nothing is looked up (`core.partition`).
  const { select } = gate
  return keys === undefined ? select(call) : keyIn(keys, selectorOf(gate))
}

/** The keys that a call has given at these gates, and whatever others it is asked for, as one function. */
export function keysAsked(
  gates: readonly KeyedGate[],
  keys: readonly (string | undefined)[],
  call: Call,
  selectors: ReadonlyMap<string, Selector>,
): KeyFunction {
  const known = new Map<string, string | undefined>()
  for (const [at, gate] of gates.entries()) if (isAsked(gate, call)) known.set(selectorOf(gate), keys[at])
  return (selector) => {
    if (known.has(selector)) return known.get(selector)
    return call.keys === undefined ? selectors.get(selector)?.(call) : keyIn(call.keys, selector)
  }
}

function isAsked({ kind }: KeyedGate, call: Call): boolean {
  return kind === 'pool' || call.bodiless !== true
}

function selectorOf(gate: KeyedGate): string {
  return gate.kind === 'pool' ? gate.pool.selector : gate.places.selector
}

function keyIn(keys: KeyRecord | KeyFunction, selector: string): string | undefined {
  if (typeof keys === 'function') return keys(selector)
  return Object.hasOwn(keys, selector) ? keys[selector] : undefined
}

/** Everything that a call needs, in judging order. */
export function resourcesOf(route: Route, { partitions, place }: Keyed): readonly Resource[] {
  if (partitions === null && place === null) return route.resources
  const resources: Resource[] = []
  let next = 0
  for (const gate of route.gates) {
    if (gate.kind === 'resource') resources.push(gate.resource)
    else if (gate.kind === 'delivery') {
      if (place !== null) resources.push(place)
    } else {
      const partition = partitions?.[next]
      if (partition?.pool !== gate.pool) continue // a call without a key there (PAR-3)
      next += 1
      if (partition.concurrency !== null) resources.push(partition.concurrency)
      if (partition.rate !== null) resources.push(partition.rate)
    }
  }
  return resources
}

/** What a call with keys needs, and the first of it that has no room. */
interface Needs {
  readonly keyed: Keyed
  readonly lacking: Resource | undefined
}

/**
 * Asks every gate, in judging order; where the call cannot wait, up to the first without room. A refusal, where no
 * waiting would help. Takes nothing, and enters nothing.
 */
export function needsOf(
  route: Route,
  keys: readonly (string | undefined)[],
  queue: Queue,
  nowMs: number,
): Needs | Refusal {
  let lacking: Resource | undefined
  let { partitions, place } = NONE
  let nextKey = 0
  for (const gate of route.gates) {
    if (gate.kind === 'resource') {
      if (lacking === undefined && !queue.hasRoom(gate.resource, nowMs)) lacking = gate.resource
    } else {
      const id = keys[nextKey]
      nextKey += 1
      if (id === undefined) continue
      if (gate.kind === 'delivery') {
        place = gate.places.find(id)
        // Never queues: who does not read what he has must not make others wait (REL-6).
        if (!queue.hasRoom(place, nowMs)) return place.scope.refuse('delivery')
      } else {
        const { pool } = gate
        const partition = pool.find(id, nowMs)
        // Room for an entry cannot be waited for: what would be waited in is the entry itself.
        if (!pool.canHold(partition, nowMs)) return pool.scope.refuse('partition_limit')
        partitions = partitions === null ? [partition] : [...partitions, partition]
        lacking ??= lackingIn(partition, queue, nowMs)
      }
    }
    if (lacking !== undefined && route.program.queue === null) break
  }
  return { keyed: { partitions, place }, lacking }
}

function lackingIn({ concurrency, rate }: Partition, queue: Queue, nowMs: number): Resource | undefined {
  if (concurrency !== null && !queue.hasRoom(concurrency, nowMs)) return concurrency
  return rate !== null && !queue.hasRoom(rate, nowMs) ? rate : undefined
}

/** The rate that cannot admit a call before its deadline, with the time to wait (QUE-6). */
export function tooLateIn(resources: readonly Resource[], policy: QueueConfig, nowMs: number): Refusal | undefined {
  for (const resource of resources) {
    if (!resource.timed) continue
    // At the deadline itself a waiter expires before it is granted (QUE-12), so room at that instant is too late.
    const waitMs = resource.msUntilRoom(nowMs, resource.waiting)
    if (waitMs >= policy.maxQueueDelayMs) return refusal(resource.reason, resource.scope.name, waitMs)
  }
  return undefined
}

/** A call uses its partitions and its place from now on, whether it waits or starts at once. */
export function enterKeyed({ partitions, place }: Keyed, nowMs: number): void {
  for (const partition of partitions ?? []) partition.pool.enter(partition, nowMs)
  place?.places.enter(place)
}

/** It starts in them. */
export function startKeyed({ partitions, place }: Keyed, nowMs: number): void {
  for (const partition of partitions ?? []) partition.start(nowMs)
  place?.take()
}

/** Before anything is entered: a caller's mistake must not cost a permit (ADM-7). */
export function bytesOf(declared: DeclaredBytes, policy: QueueConfig): number {
  const bytes = declared === 'unknown' ? policy.unknownBodyBytes : declared
  if (Number.isSafeInteger(bytes) && bytes >= 0) return bytes
  throw new RangeError(`Cannot queue the call: bytes must be a whole number, 0 or more, got ${bytes}`)
}
