import { unreachable } from '../assert.ts'
import { UpstreamRuleError } from './errors.ts'
import type { Upstream } from './upstream.ts'
import type { UpstreamEvent } from './upstream-events.ts'

/** What the rules look at in an upstream; undefined is unknown or gone. */
export interface Standing {
  readonly url: string
  readonly generation: number
  readonly isLive: boolean
}

/**
 * Whether an event comes from a process that never registered, while another one of that id did: it has nothing to say
 * about that one. An upstream of generation 0 was configured, or registered, for whoever is behind its id.
 */
export function isStranger(event: UpstreamEvent, { generation }: { readonly generation: number }): boolean {
  return event.generation !== undefined && generation > 0 && event.generation > generation
}

/**
 * What becomes of an upstream by one event (GWY-2). Pure, so that a batch is judged as a whole before any of it is applied.
 *
 * @throws {UpstreamRuleError} when the event does not fit; `index` is its place in the batch.
 */
export function standingAfter(
  event: UpstreamEvent,
  standing: Standing | undefined,
  index: number,
): Standing | undefined {
  const fail = (rule: UpstreamRuleError['rule'], why: string): never => {
    throw new UpstreamRuleError(rule, event.id, index, `Cannot apply ${event.type} of "${event.id}": ${why}`)
  }
  if (standing !== undefined && event.generation !== undefined && event.generation < standing.generation) {
    // A late word of a process that was replaced must not touch its replacement.
    fail('stale_generation', `generation ${event.generation} is older than ${standing.generation}`)
  }
  switch (event.type) {
    case 'register': {
      const generation = event.generation ?? standing?.generation ?? 0
      if (standing !== undefined && standing.url !== event.url && generation === standing.generation) {
        fail('url_conflict', 'it has another URL; only a newer generation may move it')
      }
      return { url: event.url, generation, isLive: true }
    }
    case 'heartbeat':
      if (standing === undefined || !standing.isLive) return fail('unknown_upstream', 'it is not registered')
      // A newer process that was never registered is as unknown as a new id.
      if ((event.generation ?? 0) > standing.generation)
        return fail('unknown_upstream', 'that generation is not registered')
      return standing
    case 'draining':
      if (standing === undefined) return fail('unknown_upstream', 'it is not registered')
      if (isStranger(event, standing)) return fail('unknown_upstream', 'that generation is not registered')
      return standing
    case 'offline':
      return standing !== undefined && isStranger(event, standing) ? standing : undefined
    default:
      return unreachable(event)
  }
}

/**
 * Judges a batch against the upstreams as they would be at each of its events, and answers the ids that make room for
 * newcomers. Changes nothing, so that a batch is refused as a whole.
 *
 * @throws {UpstreamRuleError} for the first event that does not fit.
 */
export function judgeBatch(
  events: readonly UpstreamEvent[],
  byId: ReadonlyMap<string, Upstream>,
  maxUpstreams: number,
): readonly string[] {
  const after = new Map<string, Standing | undefined>()
  const evictable = expiredIdle(events, byId, maxUpstreams)
  const evicted: string[] = []
  let room = maxUpstreams - byId.size
  for (const [index, event] of events.entries()) {
    const before = after.has(event.id) ? after.get(event.id) : standingOf(byId.get(event.id))
    const next = standingAfter(event, before, index)
    after.set(event.id, next)
    if (before !== undefined && next === undefined) room += 1
    if (before !== undefined || next === undefined) continue
    const oldest = room > 0 ? undefined : evictable[evicted.length]
    if (oldest !== undefined) evicted.push(oldest.id)
    else if (room > 0) room -= 1
    else throw tooManyUpstreams(event.id, index, maxUpstreams)
  }
  return evicted
}

export function tooManyUpstreams(id: string, index: number, maxUpstreams: number): UpstreamRuleError {
  const message = `Cannot add "${id}": there are ${maxUpstreams} upstreams already`
  return new UpstreamRuleError('too_many_upstreams', id, index, message)
}

/** Those that may make room, the one expired longest first: nobody uses them and the batch does not name them. */
function expiredIdle(
  events: readonly UpstreamEvent[],
  byId: ReadonlyMap<string, Upstream>,
  maxUpstreams: number,
): readonly Upstream[] {
  if (byId.size + events.length <= maxUpstreams) return []
  const named = new Set(events.map(({ id }) => id))
  return [...byId.values()]
    .filter((upstream) => upstream.lease === 'expired' && upstream.activeCount === 0 && !named.has(upstream.id))
    .sort((a, b) => a.leaseUntilMs - b.leaseUntilMs)
}

function standingOf(upstream: Upstream | undefined): Standing | undefined {
  if (upstream === undefined) return undefined
  return { url: upstream.url, generation: upstream.generation, isLive: upstream.lease === 'live' }
}
