import type { Context, MiddlewareHandler, Next } from 'hono'
import type { Lease } from '../admission/lease.ts'
import type { AdmissionCore } from '../admission-core.ts'
import type { Call } from '../call.ts'
import type { Timeline } from '../clock.ts'
import type { RateStatus } from '../program/rate-status.ts'
import type { Refusal } from '../refusal.ts'
import { type Acknowledgement, acknowledge } from './acknowledge.ts'
import { type CallSource, ContextCall, type RouteIdentity } from './call-from-context.ts'
import { KeepAlive } from './execution-context.ts'
import { holdBody } from './hold-body.ts'
import type { Destination, Destinations } from './matched-route.ts'
import { addRateLimitFields, type RateLimitHeaders } from './rate-limit-headers.ts'
import { refusalResponse } from './refusal-response.ts'

/** How a request was admitted (WEB-5). */
export interface AdmissionInfo {
  /** Of the configuration that the request runs under. */
  readonly generation: number
  /** How long it was in the queue; 0 when admitted at once. */
  readonly waitedMs: number
  /** Names of the scopes that it was measured against, as in the snapshot. */
  readonly scopes: readonly string[]
}

/** For `new Hono<{ Variables: AdmissionVariables }>()`. Undefined while disabled, and on admin and health routes. */
export interface AdmissionVariables {
  admission: AdmissionInfo | undefined
}

/** What the middleware works on; one for all the middlewares of an admission. */
export interface MiddlewareParts {
  readonly core: AdmissionCore
  readonly destinations: Destinations
  readonly calls: CallSource
  readonly identify: ((c: Context) => RouteIdentity) | undefined
  readonly onRefuse: OnRefuse | undefined
  readonly rateLimitHeaders: RateLimitHeaders
  readonly random: () => number
  readonly timeline: Timeline
  /** Absent: one-way requests are answered by their handlers, like others. */
  readonly acknowledgement: Acknowledgement | undefined
}

export type OnRefuse = (c: Context, refusal: Refusal) => Response | undefined | Promise<Response | undefined>

/** Who has taken charge of a request: one admission, or several within one another. */
interface Charge {
  readonly core: AdmissionCore
  readonly within: Charge | undefined
}

// On the context itself: a WeakSet costs more than the rest of the middleware.
const CHARGE: unique symbol = Symbol('sluice.charge')
type Chargeable = Pick<Context, 'finalized'> & { [CHARGE]?: Charge }

/** Makes the middleware: request → call → admit → `next()` → release, before the response is handed on (REL-1). */
export function admissionMiddleware(parts: MiddlewareParts): MiddlewareHandler<{ Variables: AdmissionVariables }> {
  const { core, destinations, identify, timeline, acknowledgement } = parts
  const keepAlive = new KeepAlive()
  const outermost: Charge = { core, within: undefined }

  /** Takes charge of the request; false when this admission already has it (ADM-8). */
  const take = (c: Chargeable): boolean => {
    const taken = c[CHARGE]
    for (let charge = taken; charge !== undefined; charge = charge.within) {
      if (charge.core === core) return false
    }
    c[CHARGE] = taken === undefined ? outermost : { core, within: taken }
    return true
  }

  const serve = async (c: Context, next: Next, destination: Destination): Promise<Response | undefined> => {
    let lease: Lease
    let identity: RouteIdentity = destination
    // Whatever a request is, draining and stopped come first (ADM-10), also while disabled (DRN-2).
    const closed = core.closed ? await core.admit() : undefined
    if (closed?.kind === 'refused') return await refuse(parts, c, closed, identity)
    if (core.state === 'disabled') {
      lease = core.track() // no permits, but drain and stop must be able to wait for it (ADM-11)
    } else {
      if (identify !== undefined) identity = identify(c)
      const call = new ContextCall(c, parts.calls, identity)
      if (acknowledgement !== undefined && call.oneWay) return await serveOneWay(c, call, identity, acknowledgement)
      const answered = identify === undefined ? destination.bound.admit(call) : core.admit(call)
      const answer = 'kind' in answered ? answered : await answered
      if (answer.kind === 'refused') return await refuse(parts, c, answer, identity)
      lease = answer
      inform(c, lease)
    }

    // The one place where the lease of an answered request ends, however the handler does (WEB-6), unless the body ends it.
    let isHeld = false
    try {
      await next()
      if (lease.holdUntil === 'body' || lease.delivery !== undefined) {
        isHeld = holdBody(c, lease, timeline, (untilEnded) => keepAlive.hold(c, untilEnded))
      }
    } finally {
      if (!isHeld) lease.release()
    }
    if (parts.rateLimitHeaders !== 'none') addRateLimitFields(c, rateStatus(parts, identity))
    return undefined
  }

  const serveOneWay = async (
    c: Context,
    { bytes, keys }: Call,
    identity: RouteIdentity,
    how: Acknowledgement,
  ): Promise<Response> => {
    // Once it is acknowledged, that its caller goes away means nothing.
    const waiting = new AbortController()
    const { contract, method } = identity
    const answered = core.admit({ contract, method, oneWay: true, bodiless: true, bytes, keys, signal: waiting.signal })
    if (!(answered instanceof Promise) && answered.kind === 'refused') return await refuse(parts, c, answered, identity)
    const prepare = (background: Context & Chargeable, lease: Lease): void => {
      for (const [name, value] of Object.entries(c.var)) background.set(name, value)
      inform(background, lease)
      take(background)
    }
    return await acknowledge(c, answered, waiting, how, prepare, (work) => keepAlive.hold(c, work))
  }

  const admission: MiddlewareHandler<{ Variables: AdmissionVariables }> = function admission(c, next) {
    const destination = destinations.find(c)
    if (destination.isExempt || !take(c)) return next()
    const served = serve(c, next, destination)
    keepAlive.hold(c, served)
    return served
  }
  return admission
}

function inform(c: Context, { generation, waitedMs, scopes }: Lease): void {
  c.set('admission', { generation, waitedMs, scopes })
}

function rateStatus(parts: MiddlewareParts, { contract, method }: RouteIdentity): RateStatus | undefined {
  return parts.rateLimitHeaders === 'none' ? undefined : parts.core.rateStatus(contract, method)
}

async function refuse(
  parts: MiddlewareParts,
  c: Context,
  refusal: Refusal,
  identity: RouteIdentity,
): Promise<Response> {
  const { onRefuse, random } = parts
  const replacement = onRefuse === undefined ? undefined : await onRefuse(c, refusal)
  return replacement ?? refusalResponse(c, refusal, random, rateStatus(parts, identity))
}
