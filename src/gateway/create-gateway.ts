import type { Handler, Hono } from 'hono'
import { type Clock, SystemClock } from '../clock.ts'
import { quietly } from '../quietly.ts'
import { type Fetch, hostFetch } from './fetch.ts'
import { LeaseTimer } from './lease-timer.ts'
import { Prober } from './probes.ts'
import { createProxyHandler, type GatewayEnv, type ProxyOptions } from './proxy-handler.ts'
import { createRegistry, type RegistryOptions } from './registry-route.ts'
import { ResponseBodies } from './response-body.ts'
import { RevisionTag } from './revision-tag.ts'
import { ALGORITHMS, type Algorithm, Selection } from './selection.ts'
import type { Upstream, UpstreamPolicy } from './upstream.ts'
import type { UpstreamEvent, UpstreamInput } from './upstream-events.ts'
import { listUpstreams, type UpstreamLists } from './upstream-lists.ts'
import { type EventsAnswer, Upstreams } from './upstreams.ts'
import { whole } from './whole.ts'

const ACTION = 'create the gateway'

/** Active health probes (GWY-5); without them an upstream is healthy enough until a connection to it fails. */
export interface ProbeOptions {
  /** Default `/readyz`. */
  readonly path?: string
  /** Default 5000. */
  readonly intervalMs?: number
  /** Default 1000. */
  readonly timeoutMs?: number
  /** Successes in a row that make an upstream healthy; default 1. */
  readonly rise?: number
  /** Failures in a row that make it unhealthy; default 2. */
  readonly fall?: number
  readonly headers?: { readonly [name: string]: string }
  /** Default: a status from 200 to 299. */
  readonly isHealthy?: (status: number) => boolean
}

export interface GatewayOptions {
  /** Upstreams to begin with, as `sync` takes them; they need no heartbeats. */
  readonly upstreams?: readonly UpstreamInput[]
  /** Default `weighted-round-robin`. */
  readonly algorithm?: Algorithm
  /** Active probes; absent: none. */
  readonly probes?: ProbeOptions
  /** Whether an upstream that no probe has judged yet may be selected; default true. */
  readonly selectUnknown?: boolean
  /** Connect errors in a row that eject an upstream (default 1), and for how long where no probes run (default 5000). */
  readonly ejection?: { readonly connectErrors?: number; readonly ejectMs?: number }
  /** Default 15 000. */
  readonly heartbeatTimeoutMs?: number
  /** Warm-up of upstreams that name none; default 0. */
  readonly warmupMs?: number
  /** Default 1000. */
  readonly maxUpstreams?: number
  /** After this without a read, the body of a response is ended, and the upstream's with it; default 60 000. */
  readonly stallTimeoutMs?: number
  readonly clock?: Clock
  readonly fetch?: Fetch
  /** In [0, 1); for `power-of-two` and the jitter of probes. */
  readonly random?: () => number
}

/** The upstreams of a gateway, for code in its process. */
export interface UpstreamPool {
  readonly revision: number
  get(id: string): Upstream | undefined
  list(): UpstreamLists
  /** @throws {GatewayInputError | UpstreamRuleError} and has then changed nothing. */
  apply(events: readonly UpstreamEvent[]): EventsAnswer
  /** Answers the new revision. @throws {GatewayInputError | UpstreamRuleError | UpstreamConflictError} likewise. */
  sync(upstreams: readonly UpstreamInput[], expectedRevision?: number): number
  /** Calls `listener` after each change, within its step; what it throws is ignored. Answers how to end that. */
  onChange(listener: () => void): () => void
}

export interface Gateway {
  readonly upstreams: UpstreamPool
  /**
   * A handler that proxies to a selected upstream; several may differ in their options.
   *
   * @throws {RangeError} when `timeoutMs` is out of its bounds.
   * @throws {TypeError} when `trustedProxies` is unusable.
   */
  proxy(options?: ProxyOptions): Handler<GatewayEnv>
  /** The registry as an app to mount. @throws {TypeError} when it would be open to everybody. */
  registry(options: RegistryOptions): Hono
  /** Starts probes and the lease timer. Idempotent. */
  start(): void
  /** Stops them; the proxy works on, and tries what is unhealthy again after `ejectMs`. Idempotent. */
  stop(): void
}

/**
 * A gateway in front of several instances: a registry, a selection and a proxy, to be put together in a Hono app.
 *
 * Nothing is started, read or drawn before a request or `start()` (RUN-1).
 *
 * @throws {RangeError} when a number is out of its bounds, and for an unknown algorithm.
 * @throws {GatewayInputError} when `upstreams` is malformed.
 *
 * @example
 * ```ts
 * const gateway = createGateway({ probes: { path: '/readyz' } })
 * const app = new Hono()
 * app.route('/gateway', gateway.registry({ tokens: [env.GATEWAY_TOKEN] }))
 * app.all('*', gateway.proxy())
 * gateway.start()
 * ```
 */
export function createGateway(options: GatewayOptions = {}): Gateway {
  const { clock = new SystemClock(), fetch = hostFetch, random = Math.random, probes, ejection = {} } = options
  const policy: UpstreamPolicy = {
    heartbeatTimeoutMs: whole(ACTION, 'heartbeatTimeoutMs', options.heartbeatTimeoutMs ?? 15_000, 1),
    warmupMs: whole(ACTION, 'warmupMs', options.warmupMs ?? 0, 0),
    selectUnknown: options.selectUnknown ?? true,
    maxUpstreams: whole(ACTION, 'maxUpstreams', options.maxUpstreams ?? 1000, 1),
    rise: whole(ACTION, 'probes.rise', probes?.rise ?? 1, 1),
    fall: whole(ACTION, 'probes.fall', probes?.fall ?? 2, 1),
    connectErrors: whole(ACTION, 'ejection.connectErrors', ejection.connectErrors ?? 1, 1),
    ejectMs: whole(ACTION, 'ejection.ejectMs', ejection.ejectMs ?? 5000, 0),
  }
  const upstreams = new Upstreams(policy, clock)
  const selection = new Selection(upstreams, algorithmOf(options), random)
  const bodies = new ResponseBodies(clock, whole(ACTION, 'stallTimeoutMs', options.stallTimeoutMs ?? 60_000, 1))
  const leaseTimer = new LeaseTimer(upstreams, clock)
  const prober = probes === undefined ? null : new Prober(upstreams, clock, fetch, random, probePlan(probes))
  const tag = new RevisionTag()
  if (options.upstreams !== undefined) upstreams.seed(options.upstreams)

  return {
    upstreams: {
      get revision() {
        return upstreams.revision
      },
      get: (id) => {
        upstreams.expire(upstreams.nowMs())
        return upstreams.get(id)
      },
      list: () => listUpstreams(upstreams),
      apply: (events) => upstreams.apply(events),
      sync: (set, expectedRevision) => upstreams.sync(set, expectedRevision),
      onChange: (listener) => upstreams.onChange(() => void quietly(listener)),
    },
    proxy: (proxyOptions = {}) =>
      createProxyHandler(
        { upstreams, selection, bodies, clock, fetch },
        { ...proxyOptions, timeoutMs: whole('proxy', 'timeoutMs', proxyOptions.timeoutMs ?? 60_000, 1) },
      ),
    registry: (registryOptions) => createRegistry(upstreams, tag, registryOptions),
    start() {
      leaseTimer.start()
      prober?.start()
    },
    stop() {
      prober?.stop()
      leaseTimer.stop()
    },
  }
}

function algorithmOf({ algorithm = 'weighted-round-robin' }: GatewayOptions): Algorithm {
  if (ALGORITHMS.includes(algorithm)) return algorithm
  throw new RangeError(`Cannot ${ACTION}: algorithm is ${algorithm}, not one of ${ALGORITHMS.join(', ')}`)
}

function probePlan({ path = '/readyz', intervalMs = 5000, timeoutMs = 1000, headers = {}, isHealthy }: ProbeOptions): {
  readonly path: string
  readonly intervalMs: number
  readonly timeoutMs: number
  readonly headers: { readonly [name: string]: string }
  readonly isHealthy: (status: number) => boolean
} {
  if (!path.startsWith('/')) throw new RangeError(`Cannot ${ACTION}: probes.path "${path}" must start with "/"`)
  return {
    path,
    intervalMs: whole(ACTION, 'probes.intervalMs', intervalMs, 1),
    timeoutMs: whole(ACTION, 'probes.timeoutMs', timeoutMs, 1),
    headers,
    isHealthy: isHealthy ?? ((status) => status >= 200 && status < 300),
  }
}
