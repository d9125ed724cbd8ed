import type { DeliveryKey } from '../kernel/delivery.ts'
import type { Partition } from '../kernel/partitions.ts'
import type { Resource } from '../kernel/resource.ts'
import type { KeyedGate, Route } from '../program/program.ts'
import type { Call, Selector } from './call.ts'

/** What of a call's needs depends on its keys. New partitions and places are not in their pools yet. */
export interface Keyed {
  readonly partitions: readonly Partition[] | null // null: none
  readonly place: DeliveryKey | null
}

/** Of most calls. */
export const NONE: Keyed = { partitions: null, place: null }

/** The key of a call at a gate; undefined leaves it unpartitioned there (PAR-3). This is the caller's code. */
export function keyAt(
  gate: KeyedGate | undefined,
  call: Call,
  selectors: ReadonlyMap<string, Selector>,
): string | undefined {
  if (gate === undefined) return undefined
  if (gate.kind === 'delivery' && call.bodiless === true) return undefined
  const { keys } = call
  const { selector } = gate.kind === 'pool' ? gate.pool : gate.places
  if (keys === undefined) return selectors.get(selector)?.(call)
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

/** The partition of a key, if a call that nobody waits before may have it now. */
export function roomyPartition(
  gate: KeyedGate | undefined,
  id: string | undefined,
  nowMs: number,
): Partition | undefined {
  if (gate?.kind !== 'pool' || id === undefined) return undefined
  const partition = gate.pool.find(id, nowMs)
  const { concurrency, rate } = partition
  if (concurrency !== null && !concurrency.hasRoom) return undefined
  if (rate !== null && rate.msUntilRoom(nowMs, 0) > 0) return undefined
  return gate.pool.canHold(partition, nowMs) ? partition : undefined
}
