import { type Context, Hono } from 'hono'
import { streamSSE } from 'hono/streaming'
import { describe, expect, it, vi } from 'vitest'
import { createAdmission } from '../../src/hono/create-admission.ts'
import type { AdmissionVariables } from '../../src/hono/middleware.ts'
import { ManualClock } from '../../src/manual-clock.ts'
import { expectQuiet, flush, Gate, jsonOf, serve, untyped } from './support.ts'

const one = { global: { concurrency: 1 } } as const
const ok = (c: Context): Response => c.text('ok')

describe('release', () => {
  const bodies: [string, (c: Context) => Response | Promise<Response>, number][] = [
    ['text', ok, 200],
    ['a promise of text', async (c) => c.text('ok'), 200],
    ['no content', (c) => c.body(null, 204), 204],
    ['a stream', (c) => c.body(new ReadableStream({ pull: (s) => s.enqueue(new Uint8Array(1)) })), 200],
    ['server-sent events', (c) => streamSSE(c, async (s) => s.writeSSE({ data: 'x' })), 200],
    ['notFound()', (c) => c.notFound(), 404],
    [
      'a thrown Error',
      () => {
        throw new Error('mine')
      },
      418,
    ],
    ['a rejection', () => Promise.reject(new Error('mine')), 418],
  ]

  it.each(bodies)('REL-1 with %s the permit is free before the response is handed on', async (_, handler, status) => {
    const served = serve({ config: one })
    served.app.onError((_error, c) => c.text('handled', 418))
    served.app.get('/', handler)
    for (let request = 0; request < 3; request += 1) {
      const response = await served.app.request('/')
      expect(response.status).toBe(status)
      expect(served.admission.core.snapshot().active).toBe(0)
    }
    const head = await served.app.request('/', { method: 'HEAD' })
    expect(head.status).toBe(status)
    expectQuiet(served)
  })

  it('REL-1 an outer middleware already sees the permit free', async () => {
    const { admission } = serve()
    const app = new Hono()
    const seen: number[] = []
    app.use(async (_c, next) => {
      await next()
      seen.push(admission.core.snapshot().active)
    })
    app.use(admission.middleware())
    app.get('/', (c) => {
      seen.push(admission.core.snapshot().active)
      return c.text('ok')
    })
    admission.core.enable(one)
    await app.request('/')
    expect(seen).toEqual([1, 0])
  })

  it('WEB-6 a thrown value that is no Error comes out as it is, and the permit is back', async () => {
    for (const thrown of ['a string', undefined, null, { code: 7 }, 0]) {
      const served = serve({ config: one })
      served.app.get('/', () => {
        throw thrown
      })
      await expect(served.app.request('/')).rejects.toBe(thrown)
      expectQuiet(served)
    }
  })

  it('WEB-6 an unmatched path is a 404 of the app, and holds nothing afterwards', async () => {
    const served = serve({ config: one })
    served.app.notFound((c) => c.text('lost', 404))
    const response = await served.app.request('/nowhere')
    expect([response.status, await response.text()]).toEqual([404, 'lost'])
    expectQuiet(served)
  })

  it('WEB-6 status, headers and body are left as they are', async () => {
    const body = new ReadableStream<Uint8Array>()
    const original = new Response(body, { status: 299, statusText: 'Fine', headers: { 'X-Mine': '1' } })
    const { app } = serve({ config: one })
    app.get('/', () => original)
    const response = await app.request('/')
    expect(response).toBe(original)
    expect([...response.headers]).toEqual([['x-mine', '1']])
    expect(response.body).toBe(body)
    expect(response.bodyUsed).toBe(false)
  })

  it('WEB-6 onError of the app and c.error see the error of the handler', async () => {
    const error = new Error('mine')
    const seen: unknown[] = []
    const { admission } = serve({ config: one })
    const app = new Hono()
    app.onError((caught, c) => {
      seen.push(caught)
      return c.text('', 500)
    })
    app.use(async (c, next) => {
      await next()
      seen.push(c.error)
    })
    app.use(admission.middleware())
    app.get('/', () => {
      throw error
    })
    await app.request('/')
    expect(seen).toEqual([error, error])
  })
})

describe('admission of requests', () => {
  it('ADM-3 a request that finds no room is refused and its handler never runs', async () => {
    const served = serve({ config: one })
    const gate = new Gate()
    served.app.get('/', async (c) => {
      await gate.pass()
      return c.text('ok')
    })
    const running = served.app.request('/')
    const refused = await served.app.request('/')
    expect(refused.status).toBe(503)
    expect(await jsonOf(refused)).toMatchObject({ reason: 'concurrency', scope: 'global' })
    expect(gate.started).toBe(1)
    gate.open()
    expect((await running).status).toBe(200)
    expectQuiet(served)
  })

  it('CON-1 a request that waited starts when the one before it ends', async () => {
    const served = serve({ config: { ...one, queue: { maxQueuedCalls: 1 } } })
    const gate = new Gate()
    served.app.get('/', async (c) => {
      await gate.pass()
      return c.json(c.var.admission ?? null)
    })
    const first = served.app.request('/')
    const second = served.app.request('/')
    await flush()
    expect(served.admission.core.snapshot().queued.calls).toBe(1)
    served.clock.advance(250)
    gate.open()
    expect(await jsonOf(await first)).toEqual({ generation: 1, waitedMs: 0, scopes: ['global'] })
    await flush()
    gate.open()
    expect(await jsonOf(await second)).toEqual({ generation: 1, waitedMs: 250, scopes: ['global'] })
    expectQuiet(served)
  })

  it('QUE-3 a request that waits too long is refused with queue_timeout', async () => {
    const served = serve({ config: { ...one, queue: { maxQueuedCalls: 1, maxQueueDelayMs: 100 } } })
    const gate = new Gate()
    served.app.get('/', async (c) => {
      await gate.pass()
      return c.text('ok')
    })
    const first = served.app.request('/')
    const second = served.app.request('/')
    await flush()
    served.clock.advance(100)
    expect(await jsonOf(await second)).toMatchObject({ status: 503, reason: 'queue_timeout' })
    gate.open()
    await first
    expect(gate.started).toBe(1)
    expectQuiet(served)
  })

  it('QUE-5 a request aborted while it waits leaves the queue at once and its handler never runs', async () => {
    const served = serve({ config: { ...one, queue: { maxQueuedCalls: 1 } } })
    const gate = new Gate()
    served.app.get('/', async (c) => {
      await gate.pass()
      return c.text('ok')
    })
    const first = served.app.request('/')
    const aborter = new AbortController()
    const second = served.app.request(new Request('http://localhost/', { signal: aborter.signal }))
    await flush()
    aborter.abort()
    expect(served.admission.core.snapshot().queued.calls).toBe(0)
    expect(await jsonOf(await second)).toMatchObject({ reason: 'aborted' })
    gate.open()
    await first
    expect(gate.started).toBe(1)
    expectQuiet(served)
  })

  it('RUN-2 signal, headers and body are touched by nobody while there is room', async () => {
    const { app } = serve({ config: { ...one, queue: { maxQueuedCalls: 1 } } })
    app.get('/', ok)
    const request = new Request('http://localhost/')
    const touched: string[] = []
    for (const name of ['signal', 'headers', 'body'] as const) {
      const value = request[name]
      Object.defineProperty(request, name, {
        get: () => {
          touched.push(name)
          return value
        },
      })
    }
    expect((await app.request(request)).status).toBe(200)
    expect(touched).toEqual([])
  })

  it('RUN-2 the signal is touched when a request queues, and not when it is refused', async () => {
    const { app, admission } = serve({ config: { global: { concurrency: 0 } } })
    app.get('/', ok)
    const request = new Request('http://localhost/')
    let touched = 0
    const { signal } = request
    Object.defineProperty(request, 'signal', {
      get: () => {
        touched += 1
        return signal
      },
    })
    await app.request(request)
    expect(touched).toBe(0)
    await admission.core.update({ global: { concurrency: 0 }, queue: { maxQueuedCalls: 1 } })
    const waiting = app.request(request)
    await flush()
    expect(touched).toBe(1)
    await admission.core.stop()
    expect(await jsonOf(await waiting)).toMatchObject({ reason: 'stopped' })
  })

  it('QUE-8 a queued request reserves its declared bytes and its body stays unread', async () => {
    const served = serve({ config: { ...one, queue: { maxQueuedCalls: 9, unknownBodyBytes: 1000 } } })
    const gate = new Gate()
    const texts: string[] = []
    served.app.post('/', async (c) => {
      await gate.pass()
      texts.push(await c.req.text())
      return c.text('ok')
    })
    const post = (init: RequestInit): Response | Promise<Response> =>
      served.app.request('/', { method: 'POST', ...init })
    const running = [post({ body: 'first' })]
    running.push(post({ body: 'abc', headers: { 'content-length': '3' } }))
    running.push(post({ body: 'chunked' }), post({}))
    await flush()
    expect(served.admission.core.snapshot().queued).toMatchObject({ calls: 3, bytes: 1003 })
    for (const response of running) {
      gate.open()
      await response
      await flush()
    }
    expect(texts).toEqual(['first', 'abc', 'chunked', ''])
    expectQuiet(served)
  })

  it('WEB-2 a one-way request that finds no room is refused, by Prefer or by isOneWay', async () => {
    const { app } = serve({
      config: { global: { concurrency: 0 }, queue: { maxQueuedCalls: 1, maxQueueDelayMs: 50 } },
      isOneWay: (c) => c.req.query('oneway') === '1',
    })
    app.post('/', ok)
    const prefer = await app.request('/', { method: 'POST', headers: { prefer: 'Wait=5, Respond-Async' } })
    expect(await jsonOf(prefer)).toMatchObject({ status: 503, reason: 'one_way' })
    expect(await jsonOf(await app.request('/?oneway=1', { method: 'POST' }))).toMatchObject({ reason: 'one_way' })
  })

  it('WEB-2 a one-way request with room is an ordinary one', async () => {
    const { app } = serve({ config: one })
    app.post('/', ok)
    const response = await app.request('/', { method: 'POST', headers: { prefer: 'respond-async' } })
    expect([response.status, response.headers.get('preference-applied')]).toEqual([200, null])
  })

  it('WEB-6 isOneWay that throws fails its request as a handler would, and holds nothing', async () => {
    const served = serve({
      config: { global: { concurrency: 0 }, queue: { maxQueuedCalls: 1 } },
      isOneWay: () => {
        throw new Error('mine')
      },
    })
    served.app.onError((error, c) => c.text(error.message, 418))
    served.app.get('/', ok)
    expect((await served.app.request('/')).status).toBe(418)
    expectQuiet(served)
  })
})

describe('key selectors', () => {
  const partitioned = { global: { partitions: { tenant: { concurrency: 1 } } } } as const

  it('PAR-3 each key has its own limit, and undefined leaves a request unpartitioned', async () => {
    const served = serve({ config: partitioned, selectors: { tenant: (c) => c.req.header('x-tenant') } })
    const gate = new Gate()
    served.app.get('/', async (c) => {
      await gate.pass()
      return c.json(c.var.admission ?? null)
    })
    const get = (tenant?: string): Promise<Response> =>
      Promise.resolve(served.app.request('/', tenant === undefined ? {} : { headers: { 'x-tenant': tenant } }))
    const running = [get('a'), get('b'), get(''), get(), get()]
    await flush()
    expect(gate.started).toBe(5)
    const refused = await get('a')
    expect(refused.status).toBe(429)
    const text = await refused.text()
    expect(JSON.parse(text)).toMatchObject({ reason: 'partition_concurrency', scope: 'global#tenant' })
    for (let i = 0; i < 5; i += 1) gate.open()
    const [a, , , none] = await Promise.all(running)
    expect((await jsonOf(a ?? refused)).scopes).toEqual(['global#tenant'])
    expect((await jsonOf(none ?? refused)).scopes).toEqual([])
    expect(served.admission.core.snapshot().active).toBe(0)
  })

  it('PAR-3 a selector that throws fails its request as a handler would, and holds nothing', async () => {
    const served = serve({
      config: { global: { ...partitioned.global, concurrency: 1 } },
      selectors: {
        tenant: () => {
          throw new Error('mine')
        },
      },
    })
    served.app.onError((error, c) => c.text(error.message, 418))
    let ran = false
    served.app.get('/', (c) => {
      ran = true
      return c.text('ok')
    })
    const response = await served.app.request('/')
    expect([response.status, await response.text(), ran]).toEqual([418, 'mine', false])
    expect(served.admission.core.snapshot()).toMatchObject({ active: 0, scopes: [{ active: 0 }] })
  })

  it.each([[7], [null], [{}], [Promise.resolve('a')], [true]])(
    'PAR-3 a selector that answers %o fails its request, and its key is not echoed',
    async (key) => {
      const served = serve({ config: partitioned, selectors: { tenant: () => untyped(key) } })
      served.app.onError((error, c) => c.text(`${error.name}: ${error.message}`, 500))
      served.app.get('/', ok)
      const response = await served.app.request('/')
      expect(response.status).toBe(500)
      expect(await response.text()).toMatch(/^TypeError: .*selector 'tenant'.* is (number|object|boolean)$/)
      expect(served.admission.core.snapshot().active).toBe(0)
    },
  )

  it('CFG-2 a configuration that names an unknown selector is refused when admission is created', () => {
    expect(() => createAdmission({ config: partitioned })).toThrow(/tenant/)
    expect(() => createAdmission({ config: partitioned, selectors: { Tenant: () => 'a' } })).toThrow(/tenant/)
    expect(() => createAdmission({ config: partitioned, selectors: { tenant: undefined } })).toThrow(/tenant/)
    expect(() => createAdmission({ selectors: JSON.parse('{ "tenant": 1 }') })).toThrow(TypeError)
  })

  it('CFG-2 selectors may have the names of object internals', async () => {
    const selectors = Object.fromEntries(
      ['__proto__', 'constructor', 'toString'].map((name) => [name, (c: Context) => c.req.header('x')]),
    )
    const partitions = Object.fromEntries(Object.keys(selectors).map((name) => [name, { concurrency: 0 }]))
    const { app } = serve({ config: { global: { partitions } }, selectors })
    app.get('/', ok)
    expect((await app.request('/')).status).toBe(200)
    expect((await app.request('/', { headers: { x: 'a' } })).status).toBe(429)
    expect(() => createAdmission({ config: { global: { partitions: { toString: { concurrency: 1 } } } } })).toThrow(
      /toString/,
    )
  })

  it('PAR-3 no selector is asked on a route without partitions', async () => {
    const tenant = vi.fn(() => 'a')
    const { app } = serve({ config: one, selectors: { tenant } })
    app.get('/', ok)
    await app.request('/')
    expect(tenant).not.toHaveBeenCalled()
  })
})

describe('mounting', () => {
  const both = { global: { concurrency: 1 }, contracts: { '/sub': { concurrency: 1 } } } as const

  it('ADM-8 mounted several times on a path, a request reaches each limit once', async () => {
    const served = serve({ config: both })
    const { admission, app } = served
    const sub = new Hono().use(admission.middleware()).use(admission.middleware())
    sub.get('/x', admission.middleware(), (c) => c.json(admission.core.snapshot().scopes.map((s) => s.active)))
    app.use('/sub/*', admission.middleware())
    app.route('/sub', sub)
    const response = await app.request('/sub/x')
    expect(await response.json()).toEqual([1, 1])
    expect(admission.core.snapshot().totals.admitted).toBe(1)
    expectQuiet(served)
  })

  it('ADM-8 mounted on the sub-app only, its limits and the global one still apply', async () => {
    const admission = createAdmission({ config: both, clock: new ManualClock() })
    const sub = new Hono().use(admission.middleware())
    sub.onError((_, c) => c.text('', 500))
    sub.get('/x', (c) => c.json(admission.core.snapshot().scopes.map((s) => s.active)))
    const app = new Hono().route('/sub', sub)
    expect(await (await app.request('/sub/x')).json()).toEqual([1, 1])
  })

  it('ADM-8 while disabled a request is counted once, too', async () => {
    const { admission, app } = serve()
    app.use(admission.middleware())
    app.get('/', admission.middleware(), (c) => c.json(admission.core.snapshot().active))
    expect(await (await app.request('/')).json()).toBe(1)
    expect(admission.core.snapshot().active).toBe(0)
  })

  it('ADM-8 two admissions on one path both apply, each once, in any order of mounting', async () => {
    const clock = new ManualClock()
    const [outer, inner] = [createAdmission({ config: one, clock }), createAdmission({ config: one, clock })]
    const app = new Hono()
    for (const admission of [outer, inner, outer, inner]) app.use(admission.middleware())
    app.get('/', (c) => c.json([outer, inner].map(({ core }) => core.snapshot().active)))
    expect(await (await app.request('/')).json()).toEqual([1, 1])
    expect([outer, inner].map(({ core }) => core.snapshot().totals.admitted)).toEqual([1, 1])
  })

  it('ADM-8 a refused request is refused once', async () => {
    const { admission, app } = serve({ config: { global: { concurrency: 0 } } })
    app.use(admission.middleware())
    app.get('/', ok)
    await app.request('/')
    expect(admission.core.snapshot().totals.refused.concurrency).toBe(1)
  })
})

describe('states', () => {
  it('WEB-5 handlers see generation, wait and scopes', async () => {
    const { admission } = serve({
      config: { ...one, contracts: { '/': { methods: { 'GET /': { concurrency: 1 } } } } },
    })
    const app = new Hono<{ Variables: AdmissionVariables }>().use(admission.middleware())
    let seen: unknown
    app.get('/', (c) => {
      seen = c.var.admission
      return c.text('ok')
    })
    await app.request('/')
    expect(seen).toEqual({ generation: 1, waitedMs: 0, scopes: ['global', 'method:/ GET /'] })
    await admission.core.update({})
    await app.request('/')
    expect(seen).toEqual({ generation: 2, waitedMs: 0, scopes: [] })
    admission.core.disable()
    await app.request('/')
    expect(seen).toBeUndefined()
  })

  it('ADM-11 while disabled a request takes no permit and is counted in active, so that stop waits for it', async () => {
    const served = serve()
    const gate = new Gate()
    served.app.get('/', async (c) => {
      await gate.pass()
      return c.text('ok')
    })
    const running = served.app.request('/')
    await flush()
    const { core } = served.admission
    expect(core.snapshot()).toMatchObject({ active: 1, generation: 0, config: null, scopes: [] })
    let report: unknown
    void core.stop().then((r) => {
      report = r
    })
    await flush()
    expect(report).toBeUndefined()
    gate.open()
    await running
    await flush()
    expect(report).toEqual({ drained: true, active: 0, queued: 0 })
  })

  it('ADM-11 a request that started while disabled is not counted twice after enable', async () => {
    const served = serve()
    const gate = new Gate()
    served.app.get('/', async (c) => {
      await gate.pass()
      return c.text('ok')
    })
    const running = served.app.request('/')
    await flush()
    served.admission.core.enable(one)
    expect(served.admission.core.snapshot()).toMatchObject({ active: 1, scopes: [{ active: 0 }] })
    gate.open()
    await running
    expectQuiet(served)
  })

  it('DRN-2 draining refuses requests also while disabled; announcing does not, and has no c.var.admission', async () => {
    const { admission, app } = serve()
    app.get('/', (c) => c.json({ info: c.var.admission ?? null, active: admission.core.snapshot().active }))
    admission.core.drain({ announceMs: 1000 })
    expect(await jsonOf(await app.request('/'))).toEqual({ info: null, active: 1 })
    expect(admission.core.snapshot().active).toBe(0)
    admission.core.drain()
    const refused = await app.request('/')
    expect(await jsonOf(refused)).toMatchObject({ status: 503, reason: 'draining' })
    admission.core.resume()
    expect((await app.request('/')).status).toBe(200)
  })

  it('DRN-6 after stop requests are refused as stopped', async () => {
    const { admission, app } = serve({ config: one })
    app.get('/', ok)
    await admission.core.stop()
    const refused = await app.request('/')
    expect(await jsonOf(refused)).toMatchObject({ status: 503, reason: 'stopped' })
    expect(refused.headers.get('connection')).toBeNull()
  })

  it('RUN-1 creating and mounting everything reads no clock, starts no timer and draws nothing', async () => {
    const random = vi.spyOn(Math, 'random')
    const crypto = vi.spyOn(globalThis.crypto, 'getRandomValues')
    const { admission, app, clock } = serve({
      config: { ...one, queue: { maxQueuedCalls: 1 } },
      selectors: { tenant: () => 'a' },
    })
    app.route('/admission', admission.admin({ tokens: { write: ['w'] } }))
    app.route('/', admission.health())
    app.get('/', ok)
    expect([clock.reads, clock.timersStarted]).toEqual([0, 0])
    expect(random).not.toHaveBeenCalled()
    expect(crypto).not.toHaveBeenCalled()
    await app.request('/')
    expect([clock.reads, clock.timersStarted]).toEqual([0, 0])
    expect(random).not.toHaveBeenCalled()
    vi.restoreAllMocks()
  })
})

describe('onRefuse', () => {
  it('WEB-3 it replaces the response, may be asynchronous, and sees the refusal', async () => {
    const seen: unknown[] = []
    const { app } = serve({
      config: { global: { concurrency: 0 } },
      onRefuse: async (c, refusal) => {
        seen.push(refusal)
        return c.text('busy', 507, { 'X-Mine': '1' })
      },
    })
    app.get('/', ok)
    const response = await app.request('/')
    expect([response.status, await response.text(), response.headers.get('x-mine')]).toEqual([507, 'busy', '1'])
    expect([response.headers.get('retry-after'), response.headers.get('cache-control')]).toEqual([null, null])
    expect(seen).toEqual([{ kind: 'refused', reason: 'concurrency', scope: 'global' }])
  })

  it('WEB-3 undefined stands for the usual response', async () => {
    const { app } = serve({ config: { global: { concurrency: 0 } }, onRefuse: () => undefined })
    app.get('/', ok)
    expect((await app.request('/')).headers.get('content-type')).toBe('application/problem+json')
  })

  it('WEB-6 when it throws, the app handles that as any error', async () => {
    const served = serve({
      config: { global: { concurrency: 0 } },
      onRefuse: () => {
        throw new Error('mine')
      },
    })
    served.app.onError((error, c) => c.text(error.message, 418))
    served.app.get('/', ok)
    expect((await served.app.request('/')).status).toBe(418)
    expectQuiet(served)
  })
})

describe('execution context', () => {
  it('RUN-3 the whole of acquire, run and release goes to waitUntil, and never rejects there', async () => {
    const served = serve({ config: one })
    const gate = new Gate()
    served.app.get('/', async () => {
      await gate.pass()
      throw 'mine'
    })
    const kept: Promise<unknown>[] = []
    const context = {
      waitUntil: (work: Promise<unknown>) => kept.push(work),
      passThroughOnException: () => {},
      props: {},
    }
    const running = Promise.resolve(served.app.request('/', {}, {}, context)).catch(() => 'failed')
    expect(kept).toHaveLength(1)
    let ended = false
    void kept[0]?.then(() => {
      ended = true
    })
    await flush()
    expect([ended, served.admission.core.snapshot().active]).toEqual([false, 1])
    gate.open()
    expect(await running).toBe('failed')
    await flush()
    expect(ended).toBe(true)
    expectQuiet(served)
  })

  it('RUN-3 without one it is asked for once, since asking costs an exception', async () => {
    const served = serve({ config: one })
    let asked = 0
    const app = new Hono()
    app.use((c, next) => {
      Object.defineProperty(c, 'executionCtx', {
        get: () => {
          asked += 1
          throw new Error('none')
        },
      })
      return next()
    })
    app.use(served.admission.middleware())
    app.get('/', ok)
    for (let request = 0; request < 3; request += 1) expect((await app.request('/')).status).toBe(200)
    expect(asked).toBe(1)
  })
})
