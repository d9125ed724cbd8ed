import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { bearerIdentity, isBearerToken } from '../hono/bearer.ts'
import { ifMatches } from '../hono/entity-tag.ts'
import { pointerStep } from '../json-pointer.ts'
import { GatewayInputError, type UpstreamRule, UpstreamRuleError } from './errors.ts'
import { isJsonType, type JsonBody, readJson } from './json-body.ts'
import { problem } from './problem.ts'
import type { RevisionTag } from './revision-tag.ts'
import { listUpstreams } from './upstream-lists.ts'
import type { Upstreams } from './upstreams.ts'

export interface RegistryOptions {
  /** Bearer tokens that may use the registry, each of `A-Z a-z 0-9 . _ ~ + / -`. */
  readonly tokens?: readonly string[]
  /** Asked when no token matches. An error, and everything but true, counts as false. */
  readonly verify?: (token: string, c: Context) => boolean | Promise<boolean>
  /** Most events in a batch; default 100. */
  readonly maxEvents?: number
  /** Most bytes of a batch; default 256 KiB. */
  readonly maxBatchBytes?: number
  /** Most bytes of a complete set; default 1 MiB. */
  readonly maxSetBytes?: number
}

const RULE_STATUS: { readonly [Rule in UpstreamRule]: number } = {
  unknown_upstream: 404,
  stale_generation: 409,
  url_conflict: 409,
  too_many_upstreams: 409,
}
const MAX_ISSUES_SHOWN = 100

/**
 * The registry over HTTP (GWY-1). Mount it in front of any admission (it must answer when the gateway is full).
 *
 * - `POST /events` with `{ "events": [...] }`: applies the batch, all or nothing;
 * - `GET /upstreams`: three disjoint lists, and the set as `PUT` takes it, with an `ETag`;
 * - `PUT /upstreams` with `{ "upstreams": [...] }` and `If-Match`: replaces the whole set (GWY-8).
 *
 * Judged in the order of ADX-2: 401, 404, 405, 415, 413, 428, 412, 400, 422, 409.
 *
 * @throws {TypeError} without a token and without `verify`, and with an unusable token: it never starts open.
 */
export function createRegistry(upstreams: Upstreams, tag: RevisionTag, options: RegistryOptions): Hono {
  const { maxEvents = 100, maxBatchBytes = 262_144, maxSetBytes = 1_048_576 } = options
  const app = new Hono()
  app.onError(answerOf)
  app.use(authenticate(options))

  app.post('/events', async (c) => {
    const body = await readBody(c.req.raw, maxBatchBytes)
    if (body.kind === 'refused') return body.response
    if (body.kind === 'broken') return brokenJson()
    const events = memberOf(body.value, 'events')
    if (Array.isArray(events) && events.length > maxEvents) {
      const detail = `The batch has ${events.length} events; at most ${maxEvents} are taken.`
      return problem(413, { title: 'Batch too large', detail, reason: 'batch_too_large' })
    }
    return json(upstreams.apply(events))
  })

  app.get('/upstreams', () => json(listUpstreams(upstreams), { etag: tag.of(upstreams.revision) }))

  app.put('/upstreams', async (c) => {
    const body = await readBody(c.req.raw, maxSetBytes)
    if (body.kind === 'refused') return body.response
    const ifMatch = c.req.header('if-match')
    if (ifMatch === undefined) {
      const detail = 'Send the ETag of GET /upstreams as If-Match.'
      return problem(428, { title: 'Precondition required', detail, reason: 'if_match_required' })
    }
    // A lease that is over changes what is current. From here to the commit nothing is awaited.
    upstreams.expire(upstreams.nowMs())
    if (!ifMatches(ifMatch, tag.of(upstreams.revision))) {
      const detail = 'The upstreams have changed since that ETag.'
      return problem(412, { title: 'Precondition failed', detail, reason: 'if_match_stale' })
    }
    if (body.kind === 'broken') return brokenJson()
    const revision = upstreams.sync(memberOf(body.value, 'upstreams'))
    return json(listUpstreams(upstreams), { etag: tag.of(revision) })
  })

  app.all('/events', () => methodNotAllowed('POST'))
  app.all('/upstreams', () => methodNotAllowed('GET, HEAD, PUT'))
  app.all('*', () => problem(404, { title: 'Not found', detail: 'There is no such route.', reason: 'no_route' }))
  return app
}

/** Says 401 and nothing else, whether the token is missing, wrong or malformed (ADX-1). */
function authenticate({ tokens = [], verify }: RegistryOptions): MiddlewareHandler {
  const unusable = tokens.findIndex((token) => !isBearerToken(token))
  if (unusable !== -1) {
    throw new TypeError(`Cannot create the registry: token ${unusable} is empty or no bearer token (RFC 6750)`)
  }
  if (tokens.length === 0 && verify === undefined) {
    throw new TypeError('Cannot create the registry: it needs a token or a verify function')
  }
  const known = tokens.map((token) => ({ token, identity: true }))
  const identityOf = bearerIdentity(known, async (token, c) => (await verify?.(token, c)) === true || undefined)
  return async (c, next) => {
    if ((await identityOf(c)) === undefined) {
      return problem(
        401,
        { title: 'Unauthorized', detail: 'A valid bearer token is required.', reason: 'unauthorized' },
        { 'www-authenticate': 'Bearer' },
      )
    }
    await next()
  }
}

type ReadBody = Exclude<JsonBody, { kind: 'too_large' }> | { readonly kind: 'refused'; readonly response: Response }

async function readBody(request: Request, maxBytes: number): Promise<ReadBody> {
  if (!isJsonType(request)) {
    const detail = 'Send application/json.'
    const response = problem(415, { title: 'Unsupported media type', detail, reason: 'media_type' })
    return { kind: 'refused', response }
  }
  const body = await readJson(request, maxBytes)
  if (body.kind !== 'too_large') return body
  const detail = `At most ${maxBytes} bytes are taken.`
  return { kind: 'refused', response: problem(413, { title: 'Content too large', detail, reason: 'too_large' }) }
}

/** The one member that a body has. */
function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new GatewayInputError('body', [{ pointer: '', message: `must be an object with "${name}"` }])
  }
  const unknown = Object.keys(value).filter((key) => key !== name)
  if (unknown.length > 0) {
    const issues = unknown.map((key) => ({ pointer: pointerStep(key), message: 'is unknown' }))
    throw new GatewayInputError('body', issues)
  }
  return Object.entries(value)[0]?.[1]
}

function answerOf(error: Error): Response {
  if (error instanceof GatewayInputError) {
    const issues = error.issues.slice(0, MAX_ISSUES_SHOWN)
    const reason = error.unknownType ? 'unknown_event_type' : 'invalid'
    const detail = error.unknownType
      ? 'An event has no type, or one that is none of register, heartbeat, draining, offline.'
      : 'The content is not valid.'
    const members = { title: 'Invalid content', detail, reason, issues, total: error.issues.length }
    return problem(error.unknownType ? 400 : 422, members)
  }
  if (error instanceof UpstreamRuleError) {
    const { rule, id, index } = error
    return problem(RULE_STATUS[rule], { title: 'Not applied', detail: error.message, reason: rule, id, index })
  }
  return problem(500, { title: 'Internal error', detail: 'The registry failed.', reason: 'internal' })
}

function brokenJson(): Response {
  return problem(400, { title: 'Broken JSON', detail: 'The content is no JSON.', reason: 'broken_json' })
}

function methodNotAllowed(allow: string): Response {
  const detail = `Use ${allow}.`
  return problem(405, { title: 'Method not allowed', detail, reason: 'method_not_allowed' }, { allow })
}

function json(value: unknown, headers: { readonly [name: string]: string } = {}): Response {
  return Response.json(value, { headers: { 'cache-control': 'no-store', ...headers } })
}
