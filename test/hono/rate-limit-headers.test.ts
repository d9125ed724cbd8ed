import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import { rateLimitFields } from '../../src/hono/rate-limit-headers.ts'
import { serve } from './support.ts'

const status = { scope: 'global', limit: 100, windowMs: 60_000, remaining: 42, resetMs: 17_001 }
const rate = { algorithm: 'fixed-window', permitLimit: 2, windowMs: 10_000 } as const

describe('RateLimit fields', () => {
  it('WEB-4 they have the shape of the current draft', () => {
    expect(rateLimitFields(status)).toEqual({
      'RateLimit-Policy': '"global";q=100;w=60',
      RateLimit: '"global";r=42;t=18',
    })
  })

  it('WEB-4 windows are whole seconds, at least 1, and remaining permits whole and never below 0', () => {
    expect(rateLimitFields({ ...status, windowMs: 100, remaining: -0.5, resetMs: -3 })).toEqual({
      'RateLimit-Policy': '"global";q=100;w=1',
      RateLimit: '"global";r=0;t=0',
    })
    expect(rateLimitFields({ ...status, windowMs: 1001, remaining: 1.9 })).toMatchObject({
      'RateLimit-Policy': '"global";q=100;w=2',
      RateLimit: '"global";r=1;t=18',
    })
  })

  it('WEB-4 t is never later than Retry-After', () => {
    expect(rateLimitFields(status, 5).RateLimit).toBe('"global";r=42;t=5')
    expect(rateLimitFields(status, 30).RateLimit).toBe('"global";r=42;t=18')
  })

  it('WEB-4 names are ASCII strings whatever the route is called', () => {
    const { RateLimit } = rateLimitFields({ ...status, scope: 'method:/ü "x\\y" \ud800\n' })
    expect(RateLimit).toBe('"method:/%C3%BC \\"x\\\\y\\" %EF%BF%BD%0A";r=42;t=18')
  })

  it('WEB-4 they are not sent unless asked for', async () => {
    const { app } = serve({ config: { global: { rate } } })
    app.get('/', (c) => c.text('ok'))
    const response = await app.request('/')
    expect(response.headers.get('ratelimit')).toBeNull()
    expect(response.headers.get('ratelimit-policy')).toBeNull()
  })

  it('WEB-4 answers and refusals tell what is left', async () => {
    const { app } = serve({ config: { global: { rate } }, rateLimitHeaders: 'list-r-t' })
    app.get('/', (c) => c.text('ok'))
    const first = await app.request('/')
    expect(first.headers.get('ratelimit-policy')).toBe('"global";q=2;w=10')
    expect(first.headers.get('ratelimit')).toBe('"global";r=1;t=10')
    await app.request('/')
    const refused = await app.request('/')
    expect(refused.status).toBe(429)
    expect(refused.headers.get('ratelimit')).toBe('"global";r=0;t=10')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(10)
  })

  it('WEB-4 the most restrictive rate of the route counts', async () => {
    const { app } = serve({
      config: {
        global: { rate: { ...rate, permitLimit: 100 } },
        contracts: { '/': { methods: { 'GET /x': { rate } } } },
      },
      rateLimitHeaders: 'list-r-t',
    })
    app.get('/x', (c) => c.text('ok')).get('/y', (c) => c.text('ok'))
    expect((await app.request('/x')).headers.get('ratelimit')).toBe('"method:/ GET /x";r=1;t=10')
    expect((await app.request('/y')).headers.get('ratelimit')).toBe('"global";r=98;t=10')
  })

  it('WEB-4 a route without a rate has no fields', async () => {
    const { app } = serve({ config: { global: { concurrency: 1 } }, rateLimitHeaders: 'list-r-t' })
    app.get('/', (c) => c.text('ok'))
    expect((await app.request('/')).headers.get('ratelimit')).toBeNull()
  })

  it('WEB-6 fields that the app has set are left as they are', async () => {
    const { app } = serve({ config: { global: { rate } }, rateLimitHeaders: 'list-r-t' })
    app.get('/', (c) => c.text('ok', 200, { RateLimit: '"mine";r=1' }))
    const response = await app.request('/')
    expect(response.headers.get('ratelimit')).toBe('"mine";r=1')
    expect(response.headers.get('ratelimit-policy')).toBeNull()
  })

  it('WEB-6 a response with immutable headers keeps its status, headers and body', async () => {
    const { app } = serve({ config: { global: { rate } }, rateLimitHeaders: 'list-r-t' })
    const original = await fetch('data:text/x-mine,fetched')
    expect(() => original.headers.set('a', 'b')).toThrow()
    app.get('/', () => original)
    const response = await app.request('/')
    expect(response.headers.get('ratelimit')).toBe('"global";r=1;t=10')
    expect(response.headers.get('content-type')).toBe('text/x-mine')
    expect(await response.text()).toBe('fetched')
  })

  it('WEB-6 errors and missing routes get the fields too, and stay what they are', async () => {
    const { app } = serve({ config: { global: { rate: { ...rate, permitLimit: 9 } } }, rateLimitHeaders: 'list-r-t' })
    app.onError((error, c) => c.text(error.message, 418))
    app.get('/throws', () => {
      throw new Error('mine')
    })
    const failed = await app.request('/throws')
    expect([failed.status, await failed.text()]).toEqual([418, 'mine'])
    expect(failed.headers.get('ratelimit')).toBe('"global";r=8;t=10')
    expect((await app.request('/nowhere')).status).toBe(404)
  })

  it('WEB-4 while disabled there are none', async () => {
    const { app } = serve({ rateLimitHeaders: 'list-r-t' })
    app.route(
      '/',
      new Hono().get('/', (c) => c.text('ok')),
    )
    expect((await app.request('/')).headers.get('ratelimit')).toBeNull()
  })
})
