import type { Context } from 'hono'
import type { RateStatus } from '../program/rate-status.ts'

/**
 * `list-r-t`: the fields `RateLimit-Policy: "name";q=100;w=60` and `RateLimit: "name";r=42;t=18`, the shape of the IETF
 * drafts since -08. Named by shape, since the drafts still move.
 */
export type RateLimitHeaders = 'none' | 'list-r-t'

/** The two fields of one response. */
export interface RateLimitFields {
  readonly 'RateLimit-Policy': string
  readonly RateLimit: string
}

const PLAIN = /^[ !#-[\]-~]*$/ // what a structured-field string has as it is

/** A scope's name as a structured-field string, which is ASCII: the rest is percent-encoded. */
function quoted(scope: string): string {
  if (PLAIN.test(scope)) return `"${scope}"`
  const ascii = scope.replace(/\p{Surrogate}/gu, '\ufffd').replace(/[^\x20-\x7e]+/gu, encodeURIComponent)
  return `"${ascii.replace(/["\\]/g, '\\$&')}"`
}

/**
 * The quota and what is left of it. Seconds are rounded up: a caller that believes them asks too seldom, not too often.
 * `t` is never later than a `Retry-After` sent beside it.
 */
export function rateLimitFields(
  status: RateStatus,
  retryAfterSeconds: number = Number.POSITIVE_INFINITY,
): RateLimitFields {
  const name = quoted(status.scope)
  const windowSeconds = Math.max(1, Math.ceil(status.windowMs / 1000))
  const resetSeconds = Math.min(Math.max(0, Math.ceil(status.resetMs / 1000)), retryAfterSeconds)
  return {
    'RateLimit-Policy': `${name};q=${status.limit};w=${windowSeconds}`,
    RateLimit: `${name};r=${Math.max(0, Math.floor(status.remaining))};t=${resetSeconds}`,
  }
}

/** Adds the fields to the response that is about to leave, unless the app has set them itself (WEB-4, WEB-6). */
export function addRateLimitFields(c: Context, status: RateStatus | undefined): void {
  if (status === undefined) return
  // A copy of an upgrade is none, and without a response there is nothing to add to: merely asking would make one.
  if (!c.finalized || c.res.status === 101) return
  const { headers } = c.res
  if (headers.has('ratelimit')) return
  const fields = rateLimitFields(status)
  try {
    headers.set('RateLimit-Policy', fields['RateLimit-Policy'])
    headers.set('RateLimit', fields.RateLimit)
  } catch {
    // The headers of a fetched response are immutable; this makes a copy.
    for (const [name, value] of Object.entries(fields)) c.header(name, value)
  }
}
