import { type Context, Hono } from 'hono'
import { matchedRoutes } from 'hono/route'
import type { Lease } from '../admission/lease.ts'
import type { Refusal } from '../refusal.ts'
import { Problem, problemResponse } from './admin-problem.ts'
import { boundedBytes } from './bounded-body.ts'

/** A one-way request was acknowledged while it waited, and then got no room: told to `onBackgroundError`. */
export class AcknowledgedRefusalError extends Error {
  readonly code = 'ADMISSION_ACKNOWLEDGED_REFUSAL'
  readonly refusal: Refusal
  constructor(refusal: Refusal) {
    super(`Cannot run an acknowledged one-way request: refused with ${refusal.reason}`)
    this.name = 'AcknowledgedRefusalError'
    this.refusal = refusal
  }
}

/** The body, also when a middleware before this one has read it: Hono keeps it then. */
async function bodyOf(c: Context, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (!c.req.raw.bodyUsed) return boundedBytes(c.req.raw, maxBytes)
  const body = new Uint8Array(await c.req.arrayBuffer())
  return body.byteLength > maxBytes ? undefined : body
}

/** How one-way requests are acknowledged (WEB-2). */
export interface Acknowledgement {
  readonly maxBodyBytes: number
  readonly onError: (error: unknown, c: Context) => void | Promise<void>
}

/**
 * Answers a one-way request that was admitted or queued before it runs. Its body is read first, while its permits or
 * its reservation are held, for it is gone with the response; the work goes on after that, told to `keep`.
 */
export async function acknowledge(
  c: Context,
  answered: Lease | Promise<Lease | Refusal>,
  waiting: AbortController,
  { maxBodyBytes, onError }: Acknowledgement,
  prepare: (background: Context, lease: Lease) => void,
  keep: (work: Promise<void>) => void,
): Promise<Response> {
  let body: Uint8Array<ArrayBuffer> | undefined
  try {
    body = await bodyOf(c, maxBodyBytes)
  } finally {
    if (body === undefined) await giveUp(answered, waiting)
  }
  if (body === undefined) {
    const detail = `The body of an acknowledged one-way request may have at most ${maxBodyBytes} bytes.`
    return problemResponse(c, new Problem(413, { detail }))
  }
  const content = body
  const work = async (): Promise<void> => {
    const answer = await answered
    if (answer.kind === 'refused') throw new AcknowledgedRefusalError(answer)
    try {
      await runInBackground(c, content, (background) => prepare(background, answer))
    } finally {
      answer.release()
    }
  }
  const report = async (error: unknown): Promise<void> => onError(error, c)
  keep(work().catch((error) => report(error).catch(() => undefined)))
  const headers = { 'Preference-Applied': 'respond-async', Vary: 'Prefer' }
  return new Response(null, { status: 202, headers })
}

/**
 * Runs the rest of a request's handlers apart from its response, which is out already: on a context of its own, so that
 * nothing they do can reach it. What they answer is cancelled.
 *
 * @throws what a handler throws, also if an error handler would have answered it.
 */
async function runInBackground(
  c: Context,
  body: Uint8Array<ArrayBuffer>,
  prepare: (background: Context) => void,
): Promise<void> {
  let failure: unknown
  const app = new Hono({ getPath: () => c.req.path })
  app.onError((error) => {
    throw error
  })
  app.use(async (background, next) => {
    prepare(background)
    await next()
    failure = background.error // an error handler of a sub-app has answered it
  })
  for (const route of matchedRoutes(c).slice(c.req.routeIndex + 1)) app.all(route.path, route.handler)
  const { url, method, headers } = c.req.raw
  const bodiless = method === 'GET' || method === 'HEAD'
  const request = new Request(url, bodiless ? { method, headers } : { method, headers, body })
  const response = await app.fetch(request, c.env, executionContextOf(c))
  await response.body?.cancel()
  if (failure !== undefined) throw failure
}

/** Gives back what was held for a request that will not run: a lease, or a place in the queue. */
async function giveUp(answer: Lease | Promise<Lease | Refusal>, waiting: AbortController): Promise<void> {
  waiting.abort()
  const late = await answer
  if (late.kind === 'admitted') late.release()
}

function executionContextOf(c: Context): Context['executionCtx'] | undefined {
  try {
    return c.executionCtx
  } catch {
    return undefined // the host passes none
  }
}
