import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { every } from 'hono/combine'
import { describe, expect, it } from 'vitest'
import { AdmissionCore } from '../../src/admission-core.ts'
import { Destinations } from '../../src/hono/matched-route.ts'
import { jsonOf, serve } from './support.ts'

interface Found {
  readonly contract: string | undefined
  readonly method: string | undefined
}

/** What a middleware at the top of `app` makes of one request. */
function finder(): {
  readonly middleware: MiddlewareHandler
  readonly found: Found[]
  readonly destinations: Destinations
} {
  const destinations = new Destinations(new AdmissionCore())
  const found: Found[] = []
  return {
    destinations,
    found,
    middleware: async (c, next) => {
      const { contract, method } = destinations.find(c)
      found.push({ contract, method })
      await next()
    },
  }
}

const ok = (c: Context): Response => c.text('ok')

async function find(build: (app: Hono) => void, path: string, method = 'GET'): Promise<Found | undefined> {
  const { middleware, found } = finder()
  const app = new Hono()
  app.use(middleware)
  build(app)
  await app.request(path, { method })
  return found[0]
}

describe('matched route', () => {
  it('WEB-1 contract is the base path of the sub-app and method the full pattern', async () => {
    const orders = new Hono().post('/', ok).get('/:id', ok)
    const build = (app: Hono): void => void app.route('/orders', orders)
    expect(await find(build, '/orders', 'POST')).toEqual({ contract: '/orders', method: 'POST /orders' })
    expect(await find(build, '/orders/7')).toEqual({ contract: '/orders', method: 'GET /orders/:id' })
  })

  it('WEB-1 a route of the app itself has contract /', async () => {
    expect(await find((app) => app.get('/x', ok), '/x')).toEqual({ contract: '/', method: 'GET /x' })
  })

  it('WEB-1 nested sub-apps and base paths add up', async () => {
    const inner = new Hono().get('/c/:d', ok)
    const build = (app: Hono): void => void app.route('/a', new Hono().route('/b', inner))
    expect(await find(build, '/a/b/c/1')).toEqual({ contract: '/a/b', method: 'GET /a/b/c/:d' })
    const based = (app: Hono): void => void app.basePath('/api').get('/x', ok)
    expect(await find(based, '/api/x')).toEqual({ contract: '/api', method: 'GET /api/x' })
    const parametric = (app: Hono): void => void app.route('/t/:tenant', new Hono().get('/x', ok))
    expect(await find(parametric, '/t/1/x')).toEqual({ contract: '/t/:tenant', method: 'GET /t/:tenant/x' })
  })

  it('WEB-1 a sub-app mounted twice is two contracts', async () => {
    const sub = new Hono().get('/x', ok)
    const build = (app: Hono): void => void app.route('/a', sub).route('/b', sub)
    expect(await find(build, '/a/x')).toEqual({ contract: '/a', method: 'GET /a/x' })
    expect(await find(build, '/b/x')).toEqual({ contract: '/b', method: 'GET /b/x' })
  })

  it('WEB-1 HEAD counts as its GET', async () => {
    expect(await find((app) => app.get('/x', ok), '/x', 'HEAD')).toEqual({ contract: '/', method: 'GET /x' })
  })

  it('WEB-1 a route made with all, and one of a method of its own, are named as registered', async () => {
    expect(await find((app) => app.all('/x', ok), '/x', 'PUT')).toEqual({ contract: '/', method: 'ALL /x' })
    expect(await find((app) => app.on('PURGE', '/x', ok), '/x', 'PURGE')).toEqual({ contract: '/', method: 'PURGE /x' })
  })

  it('WEB-1 middleware of every kind is passed over, the first handler counts', async () => {
    const pass: MiddlewareHandler = (_c, next) => next()
    const build = (app: Hono): void => {
      app.use('/x/*', pass)
      app.get('/x/:id', pass, ok)
      app.get('/x/*', ok)
    }
    expect(await find(build, '/x/1')).toEqual({ contract: '/', method: 'GET /x/:id' })
  })

  it('WEB-1 a sub-app with its own onError hides nothing, however deep', async () => {
    const inner = new Hono().get('/c', ok)
    inner.onError((_, c) => c.text('inner', 500))
    const outer = new Hono().use((_c, next) => next()).route('/b', inner)
    outer.onError((_, c) => c.text('outer', 500))
    expect(await find((app) => app.route('/a', outer), '/a/b/c')).toEqual({ contract: '/a/b', method: 'GET /a/b/c' })
  })

  it('WEB-1 without a handler the path is unmatched', async () => {
    const unmatched = { contract: undefined, method: undefined }
    expect(await find((app) => app.get('/x', ok), '/y')).toEqual(unmatched)
    expect(await find((app) => app.get('/x', ok), '/x', 'POST')).toEqual(unmatched)
    expect(await find((app) => app.get('/x', (c, _next) => Promise.resolve(c.text('ok'))), '/x')).toEqual(unmatched)
  })

  it('WEB-1 optional parameters and wildcards keep their pattern', async () => {
    expect(await find((app) => app.get('/x/:id?', ok), '/x')).toMatchObject({ method: 'GET /x/:id?' })
    expect(await find((app) => app.get('/f/*', ok), '/f/a/b')).toMatchObject({ method: 'GET /f/*' })
    expect(await find((app) => app.get('/n/:id{[0-9]+}', ok), '/n/7')).toMatchObject({ method: 'GET /n/:id{[0-9]+}' })
  })

  it('WEB-1 the middleware finds the route also from within a combined middleware', async () => {
    const { middleware, found } = finder()
    const app = new Hono()
    const pass: MiddlewareHandler = (_c, next) => next()
    app.use(every(pass, pass, middleware))
    app.get('/x', ok)
    await app.request('/x')
    expect(found).toEqual([{ contract: '/', method: 'GET /x' }])
  })

  it('ADM-2 a route is judged once: every request to it finds the same destination', async () => {
    const { destinations } = finder()
    const seen = new Set<object>()
    const app = new Hono()
    app.use(async (c, next) => {
      seen.add(destinations.find(c))
      await next()
    })
    app.get('/x/:id', ok)
    for (const path of ['/x/1', '/x/2', '/x/3']) await app.request(path)
    expect(seen.size).toBe(1)
    for (const path of ['/nowhere', '/else']) await app.request(path)
    expect(seen.size).toBe(2)
  })
})

describe('limits by route', () => {
  it('WEB-1 contract and method limits apply to their routes and to no other', async () => {
    const { app } = serve({
      config: {
        contracts: {
          '/orders': { concurrency: 0, methods: { 'GET /orders/:id': { concurrency: 1 } } },
          '/': { methods: { 'GET /closed': { concurrency: 0 } } },
        },
      },
    })
    app.route('/orders', new Hono().get('/:id', ok))
    app.get('/closed', ok).get('/open', ok)
    expect((await jsonOf(await app.request('/orders/1'))).scope).toBe('contract:/orders')
    expect((await jsonOf(await app.request('/closed'))).scope).toBe('method:/ GET /closed')
    expect((await app.request('/closed', { method: 'HEAD' })).status).toBe(503)
    expect((await app.request('/open')).status).toBe(200)
  })

  it('WEB-1 an unmatched path has the global scope only', async () => {
    const { app, admission } = serve({ config: { contracts: { '/': { concurrency: 0 } } } })
    expect((await app.request('/nowhere')).status).toBe(404)
    await admission.core.update({ global: { concurrency: 0 } })
    expect((await app.request('/nowhere')).status).toBe(503)
  })

  it('WEB-1 identify replaces contract and method', async () => {
    const { app } = serve({
      config: { contracts: { gold: { concurrency: 0 }, '/': { methods: { export: { concurrency: 0 } } } } },
      identify: (c) => ({ contract: c.req.header('x-plan') ?? '/', method: c.req.query('action') }),
    })
    app.get('/x', (c, _next) => Promise.resolve(c.text('ok')))
    expect((await app.request('/x')).status).toBe(200)
    expect((await jsonOf(await app.request('/x', { headers: { 'x-plan': 'gold' } }))).scope).toBe('contract:gold')
    expect((await jsonOf(await app.request('/x?action=export'))).scope).toBe('method:/ export')
  })

  it('WEB-1 identify that names nothing leaves the global scope', async () => {
    const { app } = serve({
      config: { global: { concurrency: 5 }, contracts: { '/': { concurrency: 0 } } },
      identify: () => ({}),
    })
    app.get('/', (c) => c.json(c.var.admission ?? null))
    expect((await jsonOf(await app.request('/'))).scopes).toEqual(['global'])
  })

  it('WEB-6 identify that throws fails its request as a handler would, and holds nothing', async () => {
    const served = serve({
      config: { global: { concurrency: 1 } },
      identify: () => {
        throw new Error('mine')
      },
    })
    served.app.onError((error, c) => c.text(error.message, 418))
    served.app.get('/', ok)
    expect((await served.app.request('/')).status).toBe(418)
    expect(served.admission.core.snapshot()).toMatchObject({ active: 0, totals: { admitted: 0 } })
  })

  it('PUB-6 a route that was bound before an update follows it', async () => {
    const { app, admission } = serve({ config: { contracts: { '/': { concurrency: 0 } } } })
    app.get('/', ok)
    expect((await app.request('/')).status).toBe(503)
    await admission.core.update({ contracts: { '/': { concurrency: 1 } } })
    expect((await app.request('/')).status).toBe(200)
    admission.core.disable()
    expect((await app.request('/')).status).toBe(200)
    admission.core.enable({ contracts: { '/': { methods: { 'GET /': { concurrency: 0 } } } } })
    expect((await app.request('/')).status).toBe(503)
  })
})
