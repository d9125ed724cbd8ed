import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import { refusalResponse, retryAfterSeconds } from '../../src/hono/refusal-response.ts'
import { type RefusalReason, refusal } from '../../src/refusal.ts'
import { jsonOf } from './support.ts'

async function respond(answer: ReturnType<typeof refusal>, random = 0): Promise<Response> {
  return await new Hono()
    .all('*', (c) => refusalResponse(c, answer, () => random, undefined))
    .request('/', { method: 'POST', body: 'unread' })
}

const STATUSES: { readonly [R in RefusalReason]: number } = {
  concurrency: 503,
  rate: 429,
  partition_concurrency: 429,
  partition_rate: 429,
  partition_limit: 503,
  queue_calls: 503,
  queue_bytes: 503,
  queue_timeout: 503,
  one_way: 503,
  delivery: 429,
  draining: 503,
  stopped: 503,
  aborted: 503,
}

const REASONS: readonly RefusalReason[] = [
  'concurrency',
  'rate',
  'partition_concurrency',
  'partition_rate',
  'partition_limit',
  'queue_calls',
  'queue_bytes',
  'queue_timeout',
  'one_way',
  'delivery',
  'draining',
  'stopped',
  'aborted',
]

describe('refusal response', () => {
  it.each(REASONS)('WEB-3 %s is a problem document whose status is the real one', async (reason) => {
    const response = await respond(refusal(reason, 'contract:/orders', 1500))
    expect(response.status).toBe(STATUSES[reason])
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('connection')).toBeNull()
    const body = await jsonOf(response)
    expect(Object.keys(body)).toEqual(['type', 'title', 'status', 'detail', 'reason', 'scope', 'retryAfterMs'])
    expect(body).toMatchObject({ status: response.status, reason, scope: 'contract:/orders', retryAfterMs: 1500 })
    expect(body.type).toBe(`urn:sluice:refused:${reason}`)
    expect(body.title).toMatch(/^[A-Z]/)
    expect(body.detail).toMatch(/\.$/)
  })

  it('WEB-3 scope and retryAfterMs are absent where the refusal has none', async () => {
    const body = await jsonOf(await respond(refusal('draining')))
    expect(Object.keys(body)).toEqual(['type', 'title', 'status', 'detail', 'reason'])
  })

  it('WEB-3 a scope with quotes, backslashes, line breaks and lone surrogates is still JSON', async () => {
    for (const scope of [
      'contract:/"x"',
      'contract:/\\',
      'contract:/\n\u2028',
      'contract:/\ud800',
      'contract:/ünï/:ключ',
    ]) {
      const body = await jsonOf(await respond(refusal('concurrency', scope)))
      expect(body.scope).toBe(scope)
    }
  })

  it.each([
    [undefined, 1],
    [0, 1],
    [1, 1],
    [999, 1],
    [1000, 1],
    [1001, 2],
    [60_000, 60],
    [2_147_483_647, 2_147_484],
  ])('WEB-3 for %j ms the least Retry-After is %j s', (retryAfterMs, seconds) => {
    expect(retryAfterSeconds(refusal('rate', 'global', retryAfterMs))).toBe(seconds)
  })

  it.each([undefined, 1, 1001, 60_000])('WEB-3 for %j ms the jitter is at most the same again plus 1', async (ms) => {
    const least = retryAfterSeconds(refusal('rate', 'global', ms))
    const seen = new Set<number>()
    for (let draw = 0; draw < 1; draw += 1 / 256) {
      const response = await respond(refusal('rate', 'global', ms), draw)
      seen.add(Number(response.headers.get('retry-after')))
    }
    expect(Math.min(...seen)).toBe(least)
    expect(Math.max(...seen)).toBe(2 * least + 1)
    for (const seconds of seen) expect(Number.isInteger(seconds)).toBe(true)
    expect((await jsonOf(await respond(refusal('rate', 'global', ms), 0.999))).retryAfterMs).toBe(ms)
  })

  it('WEB-3 headers that others prepared are kept', async () => {
    const app = new Hono()
    app.use(async (c, next) => {
      c.header('X-Request-Id', '7')
      c.res.headers.set('Access-Control-Allow-Origin', '*')
      await next()
    })
    app.use((c, _next) => Promise.resolve(refusalResponse(c, refusal('concurrency', 'global'), () => 0, undefined)))
    const response = await app.request('/')
    expect(response.status).toBe(503)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(response.headers.get('x-request-id')).toBe('7')
    expect(response.headers.get('access-control-allow-origin')).toBe('*')
  })

  it('RUN-5 the body of a refused request is neither read nor cancelled', async () => {
    let touched = false
    const body = new ReadableStream(
      {
        pull() {
          touched = true
        },
        cancel() {
          touched = true
        },
      },
      { highWaterMark: 0 },
    )
    const init: RequestInit & { duplex: 'half' } = { method: 'POST', body, duplex: 'half' }
    const request = new Request('http://localhost/', init)
    const app = new Hono().post('/', (c) => refusalResponse(c, refusal('concurrency', 'global'), () => 0, undefined))
    await app.request(request)
    expect(request.bodyUsed).toBe(false)
    expect(touched).toBe(false)
  })
})
