import { type Context, Hono } from 'hono'
import type { AdmissionCore } from '../admission-core.ts'
import { MAX_TIMER_MS } from '../clock.ts'
import { parseConfig } from '../config/parse.ts'
import type { ConfigInput } from '../config/types.ts'
import type { State } from '../control/lifecycle.ts'
import { AdmissionConfigError } from '../errors.ts'
import { type AdminIdentity, type AdminOptions, type AdminRole, adminAuth } from './admin-auth.ts'
import { Problem, problemOf, problemResponse } from './admin-problem.ts'
import { type EntityTags, ifMatches } from './entity-tag.ts'
import { exempt } from './exempt.ts'
import { afterLarge, jsonText, optionalJsonText, parseCandidate, parseJson } from './json-body.ts'
import { METRICS_TYPE, metricsText } from './metrics-text.ts'

/** What the admin route works on; one for all the admin routes of an admission, so that they share their tags. */
export interface AdminParts {
  readonly core: AdmissionCore
  readonly tags: EntityTags
  readonly selectors: { has(name: string): boolean }
}

type Answer = (parts: AdminParts, c: Context, who: AdminIdentity) => Response | Promise<Response>

interface Row {
  readonly method: 'GET' | 'PUT' | 'POST'
  readonly path: string
  readonly role: AdminRole
  readonly answer: Answer
}

/** The specification's table, a function for each row. */
const ROWS: readonly Row[] = [
  { method: 'GET', path: '/config', role: 'read', answer: getConfig },
  { method: 'PUT', path: '/config', role: 'write', answer: putConfig },
  { method: 'POST', path: '/plan', role: 'read', answer: postPlan },
  { method: 'POST', path: '/enable', role: 'write', answer: postEnable },
  { method: 'POST', path: '/disable', role: 'write', answer: postDisable },
  { method: 'POST', path: '/drain', role: 'write', answer: postDrain },
  { method: 'POST', path: '/resume', role: 'write', answer: postResume },
  { method: 'GET', path: '/state', role: 'read', answer: getState },
  { method: 'GET', path: '/metrics', role: 'read', answer: getMetrics },
]

/**
 * The operator's HTTP as a Hono app. Whatever is wrong is judged in one order: 401, 404, 405, 403, 415, 413, 428, 412,
 * 400, 422, 409 (ADX-2). Each function below throws what is wrong in that order too.
 *
 * @throws {TypeError} when nobody could use it, or anybody could (ADX-1).
 */
export function adminRoute(parts: AdminParts, options: AdminOptions): Hono {
  const authenticate = adminAuth(options)
  // Authentication is part of every handler, not a middleware before them: a stranger learns no path, and each handler
  // is exempt by itself (ADX-6).
  const guarded = (answer: Answer) =>
    exempt(async (c: Context): Promise<Response> => {
      try {
        const who = await authenticate(c)
        if (who === undefined) throw new Problem(401, {}, { 'WWW-Authenticate': 'Bearer' })
        return await answer(parts, c, who)
      } catch (error) {
        const problem = problemOf(error)
        if (problem === undefined) throw error
        return problemResponse(c, problem)
      }
    })

  const app = new Hono()
  for (const { method, path, role, answer } of ROWS) {
    app.on(
      method,
      path,
      guarded((_, c, who) => {
        if (role === 'write' && who.role !== 'write') throw new Problem(403, { detail: 'This needs the write role.' })
        return answer(parts, c, who)
      }),
    )
  }
  for (const path of new Set(ROWS.map((row) => row.path))) {
    const methods = ROWS.filter((row) => row.path === path).map((row) => row.method)
    const allow = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
    app.all(
      path,
      guarded(() => {
        throw new Problem(405, {}, { Allow: allow })
      }),
    )
  }
  app.all(
    '*',
    guarded(() => {
      throw new Problem(404)
    }),
  )
  return app
}

function json(c: Context, value: unknown, headers: { readonly [name: string]: string } = {}): Response {
  return c.body(JSON.stringify(value), 200, {
    'Content-Type': 'application/json',
    'Cache-Control': 'no-store',
    ...headers,
  })
}

/** The configuration resource as it is now, and the tag that names it: read in one step, so they belong together. */
function resourceOf({ core, tags }: AdminParts): { readonly value: unknown; readonly tag: string } {
  const { state, draining, generation, config } = core
  return { value: { state, draining, generation, config }, tag: tags.current() }
}

function configuration(parts: AdminParts, c: Context): Response {
  const { value, tag } = resourceOf(parts)
  return json(c, value, { ETag: tag })
}

/** Lets a writer go on only when it has seen what it is about to replace (ADX-2, ADX-7). Returns what it has seen. */
function requireMatch({ tags }: AdminParts, c: Context): string {
  const field = c.req.header('if-match')
  const current = tags.current()
  if (field === undefined || field.trim() === '') {
    throw new Problem(428, { detail: 'Send If-Match with the ETag of GET /config.' }, { ETag: current })
  }
  if (!ifMatches(field, current)) throw stale(current)
  return field
}

function stale(current: string): Problem {
  return new Problem(412, { detail: 'The configuration has changed since; read it again.' }, { ETag: current })
}

/** A writer's error: who has been overtaken in the meantime is told so first, whatever the candidate and the state are. */
function writeError({ tags }: AdminParts, seen: string, error: unknown): unknown {
  const current = tags.current()
  return problemOf(error) !== undefined && !ifMatches(seen, current) ? stale(current) : error
}

/** A writer judges the state first; here an invalid candidate comes before a wrong state (ADX-2). */
function judgeBeforeState(wanted: State, { core, selectors }: AdminParts, candidate: ConfigInput): void {
  if (core.state !== wanted) parseConfig(candidate, { selectors })
}

function getConfig(parts: AdminParts, c: Context): Response {
  return configuration(parts, c)
}

async function putConfig(parts: AdminParts, c: Context, who: AdminIdentity): Promise<Response> {
  const text = await jsonText(c.req.raw)
  const seen = requireMatch(parts, c)
  const candidate = parseCandidate(text)
  judgeBeforeState('enabled', parts, candidate)
  try {
    // No turn ends between the match and this call, so the source of the update is what the operator has seen (PUB-4).
    // A large document was parsed in this one, and is read by the core in the next (`update.load`).
    await parts.core.update(() => afterLarge(text).then(() => candidate), { who })
  } catch (error) {
    throw writeError(parts, seen, error)
  }
  const { value, tag } = resourceOf(parts)
  await afterLarge(text)
  return json(c, value, { ETag: tag })
}

async function postPlan(parts: AdminParts, c: Context): Promise<Response> {
  const text = await jsonText(c.req.raw)
  return json(c, parts.core.plan(parseCandidate(text)))
}

async function postEnable(parts: AdminParts, c: Context, who: AdminIdentity): Promise<Response> {
  const text = await jsonText(c.req.raw)
  requireMatch(parts, c)
  const candidate = parseCandidate(text)
  judgeBeforeState('disabled', parts, candidate)
  parts.core.enable(candidate, { who })
  return configuration(parts, c)
}

function postDisable(parts: AdminParts, c: Context, who: AdminIdentity): Response {
  requireMatch(parts, c)
  parts.core.disable({ who })
  return configuration(parts, c)
}

function draining({ core: { state, draining } }: AdminParts, c: Context): Response {
  return json(c, { state, draining })
}

async function postDrain(parts: AdminParts, c: Context, who: AdminIdentity): Promise<Response> {
  const text = await optionalJsonText(c.req.raw)
  const announceMs = text === undefined ? undefined : parseAnnounceMs(parseJson(text))
  parts.core.drain(announceMs === undefined ? { who } : { announceMs, who })
  return draining(parts, c)
}

/** Reads `{ "announceMs": n }`; the number may be left out. */
function parseAnnounceMs(body: unknown): number | undefined {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new AdmissionConfigError([{ pointer: '', message: 'must be an object' }])
  }
  let announceMs: number | undefined
  for (const [key, value] of Object.entries(body)) {
    if (key !== 'announceMs') throw new AdmissionConfigError([{ pointer: '', message: 'only announceMs is known' }])
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > MAX_TIMER_MS) {
      const message = `must be a whole number from 0 to ${MAX_TIMER_MS}`
      throw new AdmissionConfigError([{ pointer: '/announceMs', message }])
    }
    announceMs = value
  }
  return announceMs
}

function postResume(parts: AdminParts, c: Context, who: AdminIdentity): Response {
  parts.core.resume({ who })
  return draining(parts, c)
}

function getState({ core }: AdminParts, c: Context): Response {
  return json(c, core.snapshot())
}

function getMetrics({ core }: AdminParts, c: Context): Response {
  return c.body(metricsText(core.snapshot()), 200, { 'Content-Type': METRICS_TYPE, 'Cache-Control': 'no-store' })
}
