import type { Context, Env, Hono, MiddlewareHandler } from 'hono'
import { AdmissionCore, type AdmissionCoreOptions } from '../admission-core.ts'
import { registered } from '../call.ts'
import { type Clock, SystemClock, Timeline } from '../clock.ts'
import type { ConfigInput } from '../config/types.ts'
import type { PublishEvent } from '../control/reporter.ts'
import type { Refusal } from '../refusal.ts'
import type { Acknowledgement } from './acknowledge.ts'
import type { AdminOptions } from './admin-auth.ts'
import { adminRoute } from './admin-route.ts'
import type { ContextSelector, RouteIdentity } from './call-from-context.ts'
import { EntityTags } from './entity-tag.ts'
import { ownTimers } from './execution-context.ts'
import { healthRoutes } from './health-routes.ts'
import { Destinations } from './matched-route.ts'
import { type AdmissionVariables, admissionMiddleware } from './middleware.ts'
import type { RateLimitHeaders } from './rate-limit-headers.ts'

/** Options of {@link createAdmission}; `E` is the environment of the app, which types every context here. */
export interface AdmissionOptions<E extends Env = Env> {
  /** The first configuration. Left out: admission starts disabled, and limits nothing until it is enabled. */
  readonly config?: ConfigInput
  /** Key selectors by name, for `partitions` and `delivery`; `undefined` leaves a request unpartitioned. */
  readonly selectors?: { readonly [name: string]: ((c: Context<E>) => string | undefined) | undefined }
  /**
   * Replaces contract and method of the matched route. For handlers written `(c, next)`, which look like middleware,
   * and for limits that follow something else than routes.
   */
  readonly identify?: (c: Context<E>) => RouteIdentity
  /** Is this request one-way? Asked besides `Prefer: respond-async`, when the request finds no room. */
  readonly isOneWay?: (c: Context<E>) => boolean
  /**
   * Are one-way requests that are admitted or queued answered 202 at once, to run in the background (WEB-2)? Their
   * `holdUntil` and `delivery` do not apply then. Default false: they are answered by their handlers, like others.
   */
  readonly acknowledgeOneWay?: boolean
  /** The body of such a request is read first, up to this many bytes; longer ones get 413. Default 1 MiB. */
  readonly maxAcknowledgedBodyBytes?: number
  /** Told of what an acknowledged request threw, or why it was refused while it waited. Default: `console.error`. */
  readonly onBackgroundError?: (error: unknown, c: Context<E>) => void | Promise<void>
  /** Makes the response to a refused request; `undefined` stands for the usual one. */
  readonly onRefuse?: (c: Context<E>, refusal: Refusal) => Response | undefined | Promise<Response | undefined>
  /**
   * Told of every change, draining too, for an audit log. What it throws or rejects with changes nothing and is
   * dropped (ADX-6).
   */
  readonly onPublish?: (event: PublishEvent) => unknown
  /** `RateLimit` fields for the most restrictive rate of the route. Default `none`; they cost a copy of headers. */
  readonly rateLimitHeaders?: RateLimitHeaders
  /** Default: the host's monotonic clock. */
  readonly clock?: Clock
}

/** Admission for one Hono application: one core, and the ways in over HTTP. */
export interface Admission {
  readonly core: AdmissionCore
  /**
   * The middleware. Mounting it several times on a path is harmless: a request reaches each limit once (ADM-8).
   *
   * Permits are free before the response is handed to the runtime (REL-1). For a WebSocket they cover the handshake
   * only (REL-5). Keep the queue's delay below the server's idle timeout (Bun: 10 s by default, `idleTimeout`), which
   * else closes the connection of a request that waits (WEB-8).
   */
  middleware(): MiddlewareHandler<{ Variables: AdmissionVariables }>
  /**
   * The admin route, to be mounted anywhere; the middleware passes it by.
   *
   * @throws {TypeError} without tokens and `verify`, or with an empty token.
   */
  admin(options: AdminOptions): Hono
  /** `/livez` and `/readyz`, to be mounted anywhere; the middleware passes them by. */
  health(): Hono
}

/**
 * Creates admission control for a Hono application.
 *
 * Reads no clock, starts no timer and draws nothing random until the first request (RUN-1).
 *
 * @throws {AdmissionConfigError} when `config` is not valid.
 *
 * @example
 * ```ts
 * const admission = createAdmission({ config: { global: { concurrency: 100 }, queue: { maxQueuedCalls: 200 } } })
 * const app = new Hono().use(admission.middleware())
 * app.get('/', (c) => c.text(`waited ${c.var.admission?.waitedMs} ms`))
 * ```
 */
export function createAdmission<E extends Env = Env>(options: AdmissionOptions<E> = {}): Admission {
  const selectors = registered<ContextSelector>(options.selectors)
  const core = new AdmissionCore(coreOptions(options, selectors))
  const tags = new EntityTags(core)
  const middleware = admissionMiddleware({
    core,
    destinations: new Destinations(core),
    calls: { selectors, isOneWay: options.isOneWay },
    identify: options.identify,
    onRefuse: options.onRefuse,
    rateLimitHeaders: options.rateLimitHeaders ?? 'none',
    random: () => Math.random(),
    timeline: new Timeline(options.clock ?? new SystemClock()),
    acknowledgement: acknowledgementOf(options),
  })
  return {
    core,
    middleware: () => middleware,
    admin: (adminOptions) => adminRoute({ core, tags, selectors }, adminOptions),
    health: () => healthRoutes(core),
  }
}

function acknowledgementOf<E extends Env>(options: AdmissionOptions<E>): Acknowledgement | undefined {
  const { acknowledgeOneWay = false, maxAcknowledgedBodyBytes: maxBodyBytes = 2 ** 20, onBackgroundError } = options
  if (!Number.isSafeInteger(maxBodyBytes) || maxBodyBytes < 0) {
    throw new RangeError(`Cannot acknowledge: maxAcknowledgedBodyBytes must be a whole number ≥ 0, got ${maxBodyBytes}`)
  }
  if (!acknowledgeOneWay) return undefined
  return { maxBodyBytes, onError: onBackgroundError ?? ((error) => console.error(error)) }
}

function coreOptions<E extends Env>(
  { config, clock, onPublish }: AdmissionOptions<E>,
  selectors: ReadonlyMap<string, ContextSelector>,
): AdmissionCoreOptions {
  return {
    config,
    clock,
    onPublish: onPublish === undefined ? undefined : async (event) => void (await onPublish(event)),
    // The names count; the keys come from each request, and a call that is none has no key. `fromEntries` makes even
    // `__proto__` a property of its own.
    selectors: Object.fromEntries([...selectors.keys()].map((name) => [name, () => undefined])),
    ownTimers: ownTimers(),
  }
}
