import type { HeartbeatEvent, UpstreamProps, UpstreamSettings } from './upstream-events.ts'

export type Health = 'unknown' | 'healthy' | 'unhealthy'

/** That an upstream is draining: since when on the gateway's clock, and why if somebody said. */
export interface DrainingMarker {
  readonly sinceMs: number
  readonly reason?: string
}

/** What the last probe found, and when on the gateway's clock. */
export interface LastProbe {
  readonly atMs: number
  readonly isOk: boolean
}

/** How upstreams come, go and are judged. */
export interface UpstreamPolicy {
  /** A lease without heartbeats expires after this (GWY-6). Milliseconds, ≥ 1. */
  readonly heartbeatTimeoutMs: number
  /** Warm-up of those that name none. Milliseconds, ≥ 0. */
  readonly warmupMs: number
  /** Whether an upstream that was neither probed nor ejected may be selected. */
  readonly selectUnknown: boolean
  /** Most upstreams at a time; at the bound the one expired longest makes room. */
  readonly maxUpstreams: number
  /** Probes in a row that make an upstream healthy. ≥ 1. */
  readonly rise: number
  /** Probes in a row that make an upstream unhealthy. ≥ 1. */
  readonly fall: number
  /** Connect errors in a row that eject an upstream (GWY-5). ≥ 1. */
  readonly connectErrors: number
  /** How long an upstream stays unhealthy where no probes run; with probes, until they succeed. Milliseconds. */
  readonly ejectMs: number
}

/** One instance behind the gateway, as selection and handlers see it. */
export interface Upstream {
  readonly id: string
  /** http or https, without a trailing slash; request paths are appended. */
  readonly url: string
  readonly generation: number
  readonly weight: number
  readonly warmupMs: number
  readonly labels: { readonly [name: string]: string }
  readonly props: UpstreamProps
  /** Expired: it missed its heartbeats, and only a fresh register brings it back (GWY-6). */
  readonly lease: 'live' | 'expired'
  /** When the lease ends on the gateway's clock; Infinity for one that was configured and never sent an event. */
  readonly leaseUntilMs: number
  readonly health: Health
  readonly lastProbe: LastProbe | null
  readonly draining: DrainingMarker | null
  /** Requests selected for it whose response body has not ended. */
  readonly activeCount: number
  /** Moves whenever the answer of a probe in flight has become worthless. */
  readonly epoch: number
  /** Live, not draining, healthy enough (GWY-3); true of a lease that is over until {@link Upstreams.expire} ends it. */
  readonly isSelectable: boolean
  /** Weight at this instant, ramping up while warm-up lasts; > 0. */
  weightAt(nowMs: number): number
}

/** The share of its weight that an upstream has at once after a fresh register; the rest comes with the warm-up. */
const LEAST_WARM_SHARE = 0.1
const NONE: { readonly [name: string]: never } = Object.freeze({})

/**
 * Lease, health and draining of one upstream: three variables, none derived from another (GWY-2). Only `upstreams.ts`
 * holds this side of it, and changes it in one synchronous step each time.
 */
export class UpstreamState implements Upstream {
  readonly id: string
  readonly url: string
  readonly #policy: UpstreamPolicy
  readonly generation: number
  weight: number
  warmupMs: number
  labels: { readonly [name: string]: string }
  props: UpstreamProps
  lease: 'live' | 'expired'
  leaseUntilMs: number
  health: Health
  /** Probes in a row with one result: successes above zero, failures below. */
  probeStreak: number
  lastProbe: LastProbe | null
  /** Connect errors in a row. */
  connectErrors: number
  /** When an ejection ends by itself; Infinity when probes decide or there is none. */
  ejectedUntilMs: number
  draining: DrainingMarker | null
  warmSinceMs: number
  activeCount: number
  epoch: number

  constructor(id: string, url: string, generation: number, nowMs: number, policy: UpstreamPolicy) {
    this.id = id
    this.url = url
    this.#policy = policy
    this.generation = generation
    this.weight = 1
    this.warmupMs = policy.warmupMs
    this.labels = NONE
    this.props = NONE
    this.lease = 'live'
    this.leaseUntilMs = Number.POSITIVE_INFINITY
    this.health = 'unknown'
    this.probeStreak = 0
    this.lastProbe = null
    this.connectErrors = 0
    this.ejectedUntilMs = Number.POSITIVE_INFINITY
    this.draining = null
    this.warmSinceMs = nowMs
    this.activeCount = 0
    this.epoch = 0
  }

  weightAt(nowMs: number): number {
    const warmMs = nowMs - this.warmSinceMs
    if (warmMs >= this.warmupMs) return this.weight
    return this.weight * Math.max(LEAST_WARM_SHARE, warmMs / this.warmupMs)
  }

  get isSelectable(): boolean {
    if (this.lease !== 'live') return false
    if (this.draining !== null) return false
    return this.health === 'healthy' || (this.health === 'unknown' && this.#policy.selectUnknown)
  }

  /** A fresh start: everything but the requests still under way begins anew. */
  register(settings: UpstreamSettings, nowMs: number): void {
    this.configure(settings)
    this.draining = null
    this.warmSinceMs = nowMs
    this.extendLease(nowMs)
    this.#forgetHealth()
  }

  /** Takes over every setting; what is absent goes back to its default. */
  configure(settings: UpstreamSettings): void {
    this.weight = settings.weight ?? 1
    this.warmupMs = settings.warmupMs ?? this.#policy.warmupMs
    this.labels = settings.labels ?? NONE
    this.props = settings.props ?? NONE
  }

  /** Takes over the settings that a heartbeat carries; answers whether one is different now. */
  adjust(heartbeat: HeartbeatEvent): boolean {
    const before = JSON.stringify([this.weight, this.warmupMs, this.labels, this.props])
    this.weight = heartbeat.weight ?? this.weight
    this.warmupMs = heartbeat.warmupMs ?? this.warmupMs
    this.labels = heartbeat.labels ?? this.labels
    this.props = heartbeat.props ?? this.props
    return JSON.stringify([this.weight, this.warmupMs, this.labels, this.props]) !== before
  }

  extendLease(nowMs: number): void {
    this.lease = 'live'
    this.leaseUntilMs = nowMs + this.#policy.heartbeatTimeoutMs
  }

  /** Sets the marker; set already, it stays as it is. Answers whether it was new. */
  drain(marker: DrainingMarker): boolean {
    if (this.draining !== null) return false
    this.draining = Object.freeze(marker)
    this.epoch += 1
    return true
  }

  /** Clears the marker, for a full sync without it. Nobody looked after it meanwhile, so its health is unknown. */
  undrain(): void {
    if (this.draining === null) return
    this.draining = null
    this.#forgetHealth()
  }

  /** Ends the lease if it is over; answers whether it just ended. */
  expire(nowMs: number): boolean {
    if (this.lease === 'expired' || nowMs < this.leaseUntilMs) return false
    this.lease = 'expired'
    this.epoch += 1
    return true
  }

  /** Ends an ejection that is over; answers whether it just ended. */
  readmit(nowMs: number): boolean {
    if (nowMs < this.ejectedUntilMs) return false
    this.#forgetHealth()
    return true
  }

  /** Takes in a probe; answers whether health moved. */
  probed(isOk: boolean, nowMs: number): boolean {
    const health = this.health
    this.lastProbe = { atMs: nowMs, isOk }
    this.probeStreak = isOk ? Math.max(0, this.probeStreak) + 1 : Math.min(0, this.probeStreak) - 1
    if (this.probeStreak >= this.#policy.rise) {
      this.health = 'healthy'
      this.ejectedUntilMs = Number.POSITIVE_INFINITY
    }
    if (-this.probeStreak >= this.#policy.fall) this.health = 'unhealthy'
    return this.health !== health
  }

  /** A connection could not be made; answers whether that ejected it. `isProbed`: probes decide when it may return. */
  connectFailed(nowMs: number, isProbed: boolean): boolean {
    if (this.health === 'unhealthy') return false
    this.connectErrors += 1
    if (this.connectErrors < this.#policy.connectErrors) return false
    // A probe that began before this says nothing about what is known now.
    this.#forgetHealth()
    this.health = 'unhealthy'
    if (!isProbed) this.ejectedUntilMs = nowMs + this.#policy.ejectMs
    return true
  }

  /** Whether probes decide when it may return, or time. Only of one that is unhealthy does it matter. */
  setProbed(isProbed: boolean, nowMs: number): void {
    if (this.health !== 'unhealthy') return
    this.ejectedUntilMs = isProbed ? Number.POSITIVE_INFINITY : nowMs + this.#policy.ejectMs
  }

  #forgetHealth(): void {
    this.health = 'unknown'
    this.probeStreak = 0
    this.lastProbe = null
    this.connectErrors = 0
    this.ejectedUntilMs = Number.POSITIVE_INFINITY
    this.epoch += 1
  }
}
