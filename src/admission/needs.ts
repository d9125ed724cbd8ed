import type { DeliveryKey } from '../kernel/delivery.ts'
import type { Partition } from '../kernel/partitions.ts'
import type { Resource } from '../kernel/resource.ts'
import type { Route } from '../program/program.ts'

/** What of a call's needs depends on its keys. New partitions and places are not in their pools yet. */
export interface Keyed {
  readonly partitions: readonly Partition[]
  readonly place: DeliveryKey | null
}

/** Of most calls. */
export const NONE: Keyed = { partitions: [], place: null }

/** Everything that a call needs, in judging order. */
export function resourcesOf(route: Route, { partitions, place }: Keyed): readonly Resource[] {
  if (partitions.length === 0 && place === null) return route.resources
  const resources: Resource[] = []
  let next = 0
  for (const gate of route.gates) {
    if (gate.kind === 'resource') resources.push(gate.resource)
    else if (gate.kind === 'delivery') {
      if (place !== null) resources.push(place)
    } else {
      const partition = partitions[next]
      if (partition?.pool !== gate.pool) continue // a call without a key there (PAR-3)
      next += 1
      if (partition.concurrency !== null) resources.push(partition.concurrency)
      if (partition.rate !== null) resources.push(partition.rate)
    }
  }
  return resources
}
