import type { Context } from 'hono'
import type { RateStatus } from '../program/rate-status.ts'
import type { Refusal, RefusalReason } from '../refusal.ts'
import { rateLimitFields } from './rate-limit-headers.ts'

interface Face {
  readonly status: 429 | 503
  readonly title: string
  readonly detail: string
}

/** What each reason looks like on the wire. 429: this caller has had its share. 503: the server has no room (WEB-3). */
const FACES: { readonly [R in RefusalReason]: Face } = {
  concurrency: {
    status: 503,
    title: 'Concurrency limit reached',
    detail: 'As many requests as allowed are running.',
  },
  rate: { status: 429, title: 'Rate limit exceeded', detail: 'As many requests as allowed have started lately.' },
  partition_concurrency: {
    status: 429,
    title: 'Concurrency limit of the caller reached',
    detail: 'As many requests of this caller as allowed are running.',
  },
  partition_rate: {
    status: 429,
    title: 'Rate limit of the caller exceeded',
    detail: 'As many requests of this caller as allowed have started lately.',
  },
  partition_limit: {
    status: 503,
    title: 'Too many callers',
    detail: 'Requests of as many different callers as can be told apart are running.',
  },
  queue_calls: { status: 503, title: 'Queue is full', detail: 'As many requests as allowed are waiting.' },
  queue_bytes: { status: 503, title: 'Queue is full', detail: 'The waiting requests have as many bytes as allowed.' },
  queue_timeout: { status: 503, title: 'Waited too long', detail: 'No room came up in the time allowed for waiting.' },
  one_way: { status: 503, title: 'One-way requests do not wait', detail: 'There is no room to start this one now.' },
  delivery: {
    status: 429,
    title: 'Too many open responses',
    detail: 'As many responses to this caller as allowed are still being read.',
  },
  draining: { status: 503, title: 'Server is draining', detail: 'This instance finishes what it has; try another.' },
  stopped: { status: 503, title: 'Server has stopped', detail: 'This instance takes no more requests; try another.' },
  aborted: { status: 503, title: 'Request was aborted', detail: 'The caller went away before the request started.' },
}

/** The part of the document that is the same for every refusal of a reason: an object still open at its end. */
const HEADS: ReadonlyMap<string, string> = new Map(
  Object.entries(FACES).map(([reason, { status, title, detail }]) => [
    reason,
    JSON.stringify({ type: `urn:sluice:refused:${reason}`, title, status, detail, reason }).slice(0, -1),
  ]),
)

/** The RFC 9457 document of a refusal: type, title, status, detail, reason, scope, retryAfterMs. */
export function refusalBody(refusal: Refusal): string {
  const scope = refusal.scope === undefined ? '' : `,"scope":${JSON.stringify(refusal.scope)}`
  const retryAfter = refusal.retryAfterMs === undefined ? '' : `,"retryAfterMs":${refusal.retryAfterMs}`
  return `${HEADS.get(refusal.reason)}${scope}${retryAfter}}`
}

/** The least honest `Retry-After` of a refusal: whole seconds, ≥ 1. */
export function retryAfterSeconds(refusal: Refusal): number {
  return Math.max(1, Math.ceil((refusal.retryAfterMs ?? 0) / 1000))
}

/**
 * The response to a refused call (WEB-3). Neither reads nor cancels the request's body, nor asks for the connection to
 * be closed: a runtime that is told to can lose the answer (RUN-5).
 *
 * `random` (0 ≤ r < 1) spreads those who come back: `Retry-After` is at most twice the least honest value, plus 1.
 */
export function refusalResponse(
  c: Context,
  refusal: Refusal,
  random: () => number,
  rate: RateStatus | undefined,
): Response {
  const leastSeconds = retryAfterSeconds(refusal)
  const retryAfter = leastSeconds + Math.floor(random() * (leastSeconds + 2))
  // Through the context, so that headers which others prepared (CORS, a request id) are kept.
  return c.body(refusalBody(refusal), FACES[refusal.reason].status, {
    'Content-Type': 'application/problem+json',
    'Cache-Control': 'no-store',
    'Retry-After': String(retryAfter),
    ...(rate === undefined ? {} : rateLimitFields(rate, retryAfter)),
  })
}
