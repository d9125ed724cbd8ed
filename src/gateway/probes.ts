import type { Clock } from '../clock.ts'
import { type Fetch, within } from './fetch.ts'
import type { Upstream } from './upstream.ts'
import type { Upstreams } from './upstreams.ts'

/** How upstreams are probed (GWY-5); how many results in a row count is in `UpstreamPolicy`. */
export interface ProbePlan {
  /** Appended to the upstream's URL; starts with `/`. */
  readonly path: string
  /** From the start of one probe to the start of the next, ± 10 %. Milliseconds, ≥ 1. */
  readonly intervalMs: number
  /** Milliseconds, ≥ 1. */
  readonly timeoutMs: number
  readonly headers: { readonly [name: string]: string }
  /** Whether an answer with this status is a success. */
  readonly isHealthy: (status: number) => boolean
}

/** The probing of one upstream in one epoch. */
interface Probing {
  readonly epoch: number
  readonly controller: AbortController
  nextAtMs: number // Infinity while a probe is in flight
}

/**
 * Probes every upstream that is live and not draining, at once when it comes or comes back, then at intervals.
 *
 * What changes an upstream moves its epoch: the probe in flight is aborted and its answer discarded (GWY-3), here by
 * identity and once more by `Upstreams.recordProbe`. One timer for all.
 */
export class Prober {
  readonly #upstreams: Upstreams
  readonly #clock: Clock
  readonly #fetch: Fetch
  readonly #random: () => number
  readonly #plan: ProbePlan
  readonly #probings: Map<Upstream, Probing>
  #unsubscribe: (() => void) | null
  #cancelTimer: () => void

  constructor(upstreams: Upstreams, clock: Clock, fetch: Fetch, random: () => number, plan: ProbePlan) {
    this.#upstreams = upstreams
    this.#clock = clock
    this.#fetch = fetch
    this.#random = random
    this.#plan = plan
    this.#probings = new Map()
    this.#unsubscribe = null
    this.#cancelTimer = () => {}
  }

  start(): void {
    if (this.#unsubscribe !== null) return
    this.#unsubscribe = this.#upstreams.onChange(() => this.#follow())
    this.#upstreams.setProbed(true)
    this.#follow()
  }

  /** Aborts what is in flight. Health stays as it was found, until `ejectMs` is over for what is unhealthy. */
  stop(): void {
    if (this.#unsubscribe === null) return
    this.#unsubscribe()
    this.#unsubscribe = null
    this.#upstreams.setProbed(false)
    this.#cancelTimer()
    for (const { controller } of this.#probings.values()) controller.abort()
    this.#probings.clear()
  }

  /** Brings the probings in line with the upstreams. Starts no probe itself: it runs within their change. */
  #follow(): void {
    const nowMs = this.#upstreams.nowMs()
    const wanted = new Set<Upstream>()
    for (const upstream of this.#upstreams.all()) {
      if (upstream.draining !== null || upstream.lease !== 'live') continue
      wanted.add(upstream)
      const probing = this.#probings.get(upstream)
      if (probing?.epoch === upstream.epoch) continue
      probing?.controller.abort()
      // One that was just ejected waits its interval: probed at once, it would come and go with every request.
      const nextAtMs = upstream.health === 'unhealthy' ? nowMs + this.#plan.intervalMs : nowMs
      this.#probings.set(upstream, { epoch: upstream.epoch, controller: new AbortController(), nextAtMs })
    }
    for (const [upstream, { controller }] of this.#probings) {
      if (wanted.has(upstream)) continue
      controller.abort()
      this.#probings.delete(upstream)
    }
    this.#arm()
  }

  #arm(): void {
    this.#cancelTimer()
    let nextAtMs = Number.POSITIVE_INFINITY
    for (const probing of this.#probings.values()) nextAtMs = Math.min(nextAtMs, probing.nextAtMs)
    this.#cancelTimer =
      nextAtMs === Number.POSITIVE_INFINITY ? () => {} : this.#clock.callAt(nextAtMs, () => this.#run())
  }

  #run(): void {
    const nowMs = this.#upstreams.nowMs()
    for (const [upstream, probing] of this.#probings) {
      if (probing.nextAtMs > nowMs) continue
      probing.nextAtMs = Number.POSITIVE_INFINITY
      const nextAtMs = nowMs + Math.round(this.#plan.intervalMs * (0.9 + 0.2 * this.#random()))
      this.#probe(upstream, probing.controller.signal).then((isOk) => {
        if (this.#probings.get(upstream) !== probing) return // it changed meanwhile: this says nothing of what it is now
        probing.nextAtMs = nextAtMs
        this.#upstreams.recordProbe(upstream, probing.epoch, isOk)
        this.#arm()
      })
    }
    this.#arm()
  }

  /** Never rejects: whatever goes wrong with a probe is a failed probe. */
  #probe({ url }: Upstream, signal: AbortSignal): Promise<boolean> {
    const { path, timeoutMs, headers, isHealthy } = this.#plan
    const ask = async (deadline: AbortSignal): Promise<boolean> => {
      const response = await this.#fetch(
        new Request(`${url}${path}`, { headers: { ...headers }, redirect: 'manual', signal: deadline }),
      )
      response.body?.cancel().catch(() => {})
      return isHealthy(response.status)
    }
    return within(this.#clock, timeoutMs, ask, signal).catch(() => false)
  }
}
