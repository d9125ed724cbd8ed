import type { Upstream } from './upstream.ts'
import type { UpstreamInput } from './upstream-events.ts'
import type { Upstreams } from './upstreams.ts'

/** One upstream as operators see it; plain and JSON-ready. */
export interface UpstreamView {
  readonly id: string
  readonly url: string
  readonly generation: number
  readonly weight: number
  readonly warmupMs: number
  readonly labels: { readonly [name: string]: string }
  readonly props: { readonly [name: string]: unknown }
  /** `remainingMs` is null for an upstream that was configured and never sent an event. */
  readonly lease: { readonly state: 'live' | 'expired'; readonly remainingMs: number | null }
  readonly health: 'unknown' | 'healthy' | 'unhealthy'
  readonly draining: { readonly forMs: number; readonly reason: string | null } | null
  /** Requests whose response body has not ended; with `draining`, 0 says that the instance may be stopped. */
  readonly active: number
  readonly lastProbe: { readonly ok: boolean; readonly agoMs: number } | null
}

/** Three disjoint lists that together are the configured set (GWY-3). `healthy` is what can be selected. */
export interface UpstreamLists {
  readonly revision: number
  readonly healthy: readonly UpstreamView[]
  /** Neither selectable nor draining: failed probes, ejected, lease expired, or not yet probed where that is asked for. */
  readonly unhealthy: readonly UpstreamView[]
  readonly draining: readonly UpstreamView[]
  /** The set as `sync` would be given it to change nothing: edit it and send it back. */
  readonly desired: readonly UpstreamInput[]
}

/** Everything that is known of the upstreams at this instant. O(upstreams). */
export function listUpstreams(upstreams: Upstreams): UpstreamLists {
  const nowMs = upstreams.nowMs()
  upstreams.expire(nowMs)
  const healthy: UpstreamView[] = []
  const unhealthy: UpstreamView[] = []
  const draining: UpstreamView[] = []
  const desired: UpstreamInput[] = []
  for (const upstream of upstreams.all()) {
    const list = upstream.draining !== null ? draining : upstream.isSelectable ? healthy : unhealthy
    list.push(viewOf(upstream, nowMs))
    desired.push(inputOf(upstream))
  }
  return { revision: upstreams.revision, healthy, unhealthy, draining, desired }
}

function viewOf(upstream: Upstream, nowMs: number): UpstreamView {
  const { id, url, generation, weight, warmupMs, labels, props, lease, health, draining, lastProbe } = upstream
  const remainingMs = Number.isFinite(upstream.leaseUntilMs) ? Math.max(0, upstream.leaseUntilMs - nowMs) : null
  return {
    id,
    url,
    generation,
    weight,
    warmupMs,
    labels,
    props,
    lease: { state: lease, remainingMs },
    health,
    draining: draining === null ? null : { forMs: nowMs - draining.sinceMs, reason: draining.reason ?? null },
    active: upstream.activeCount,
    lastProbe: lastProbe === null ? null : { ok: lastProbe.isOk, agoMs: nowMs - lastProbe.atMs },
  }
}

function inputOf({ id, url, generation, weight, warmupMs, labels, props, draining }: Upstream): UpstreamInput {
  const settings = { id, url, generation, weight, warmupMs, labels, props }
  if (draining === null) return settings
  return { ...settings, draining: draining.reason === undefined ? true : { reason: draining.reason } }
}
