import type { Config, ContractConfig, MethodConfig } from '../../src/config/types.ts'
import type { Snapshot } from '../../src/control/snapshot.ts'
import type { Model } from './model.ts'
import type { Need } from './model-state.ts'

/** What a snapshot says, in the form of {@link expectedOf}. */
export function seenOf(snapshot: Snapshot): unknown {
  const { state, draining, announcing, generation, active, queued, totals } = snapshot
  return {
    state,
    draining,
    announcing,
    generation,
    active,
    queued,
    totals,
    scopes: sorted(snapshot.scopes.map(({ scope, limit, active, waiting }) => ({ scope, limit, active, waiting }))),
    rates: sorted(
      snapshot.rates.map(({ scope, current, algorithm, remaining, waiting }) => ({
        scope,
        current,
        algorithm,
        remaining,
        waiting,
      })),
    ),
    partitions: sorted(
      snapshot.partitions.map(({ scope, current, partitions, active, waiting }) => ({
        scope,
        current,
        partitions,
        active,
        waiting,
      })),
    ),
    openBodies: snapshot.deliveries.reduce((sum, { openBodies }) => sum + openBodies, 0),
    generations: sorted(snapshot.generations),
  }
}

/** Everything that a snapshot must say. */
export function expectedOf(model: Model): unknown {
  const { state, drain, generation, current, retired, waiters, tracked, nowMs } = model
  const waiting = (need: Need | undefined): number =>
    need === undefined ? 0 : waiters.filter(({ needs }) => needs.includes(need)).length
  const programs = current === null ? retired : [current, ...retired]
  let openBodies = 0
  for (const { keys } of model.places.values()) for (const { open } of keys.values()) openBodies += open
  return {
    state,
    draining: drain !== 'open',
    announcing: drain === 'announcing',
    generation,
    active: tracked + programs.reduce((sum, program) => sum + program.active, 0),
    queued: {
      calls: waiters.length,
      bytes: model.queuedBytes,
      oldestWaitMs: nowMs - Math.min(nowMs, ...waiters.map(({ arrivedAtMs }) => arrivedAtMs)),
    },
    totals: model.totals,
    scopes: sorted(
      [...model.permits.values()]
        .filter((permits) => permits.named || permits.active > 0 || waiting(permits) > 0)
        .map((permits) => ({
          scope: permits.scope,
          limit: permits.limit,
          active: permits.active,
          waiting: waiting(permits),
        })),
    ),
    rates: sorted(
      [...model.rates.values()].map((need) => ({
        scope: need.scope,
        current: need.named,
        algorithm: need.rate.config.algorithm,
        remaining: need.rate.free(nowMs),
        waiting: waiting(need),
      })),
    ),
    partitions: sorted(
      [...model.pools.values()].map(({ scope, named, entries }) => {
        const waits = [...entries.values()].reduce((sum, { permits, rate }) => sum + waiting(permits ?? rate), 0)
        const users = [...entries.values()].reduce((sum, entry) => sum + entry.users, 0)
        return { scope, current: named, partitions: entries.size, active: users - waits, waiting: waits }
      }),
    ),
    openBodies,
    generations: sorted(programs.map(({ generation, active, queued }) => ({ generation, active, queued }))),
  }
}

function sorted<T>(entries: readonly T[]): string[] {
  return entries.map((entry) => JSON.stringify(entry)).sort()
}

/** May an update lead from one to the other (PUB-9)? */
export function isSupported(from: Config, to: Config): boolean {
  const [before, after] = [fixedParts(from), fixedParts(to)]
  for (const scope of new Set([...before.keys(), ...after.keys()])) {
    const [one, other] = [before.get(scope), after.get(scope)]
    if (JSON.stringify([one?.rate, one?.partitions]) !== JSON.stringify([other?.rate, other?.partitions])) return false
    if (one?.delivery !== undefined && other?.delivery !== undefined && one.delivery.key !== other.delivery.key)
      return false
  }
  return true
}

function fixedParts(config: Config): Map<string, MethodConfig> {
  const parts = new Map<string, MethodConfig>([['global', config.global ?? {}]])
  for (const [id, contract] of Object.entries<ContractConfig>(config.contracts ?? {})) {
    parts.set(id, contract)
    for (const [name, method] of Object.entries(contract.methods ?? {})) parts.set(`${id} ${name}`, method)
  }
  return parts
}
