import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import { createGateway, type RegistryOptions } from '../../src/gateway.ts'
import { untyped } from '../hono/support.ts'
import { jsonOf, originOf, setup, TOKEN } from './support.ts'

type App = ReturnType<typeof setup>['app']

interface Call {
  readonly token?: string | null
  readonly headers?: Record<string, string>
  readonly body?: unknown
}

function send(
  app: App | Hono,
  method: string,
  path: string,
  { token = TOKEN, headers = {}, body }: Call = {},
): Promise<Response> {
  const init: RequestInit = {
    method,
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
  }
  if (body !== undefined) init.body = typeof body === 'string' ? body : JSON.stringify(body)
  return Promise.resolve(app.request(`http://gateway.test/gateway${path}`, init))
}

function events(...batch: readonly object[]): Call {
  return { body: { events: batch } }
}

const REGISTER_A = { type: 'register', id: 'a', url: originOf('a') }

describe('authentication', () => {
  it('GWY-1 a missing, wrong or malformed token is 401 on every route and says nothing else', async () => {
    const { app, lists } = setup()
    for (const [method, path] of [
      ['POST', '/events'],
      ['GET', '/upstreams'],
      ['PUT', '/upstreams'],
      ['DELETE', '/events'],
      ['GET', '/nothing'],
    ] as const) {
      for (const headers of [
        {},
        { authorization: 'Bearer wrong' },
        { authorization: `Basic ${TOKEN}` },
        { authorization: 'Bearer' },
        { authorization: `Bearer ${TOKEN} ${TOKEN}` },
        { authorization: 'Bearer ä' },
      ]) {
        const body = method === 'GET' ? {} : events(REGISTER_A)
        const response = await send(app, method, path, { token: null, ...body, headers })
        expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
        expect(await jsonOf(response)).toMatchObject({ status: 401, reason: 'unauthorized' })
      }
    }
    expect(lists()).toEqual([[], [], []])
  })

  it('GWY-1 a registry that would be open to everybody, or to nobody, is not made', () => {
    const gateway = createGateway()
    for (const options of [{}, { tokens: [] }, { tokens: [''] }, { tokens: [TOKEN, 'two words'] }]) {
      expect(() => gateway.registry(options)).toThrow(TypeError)
    }
  })

  it('GWY-1 verify judges the token, and one that fails has judged no', async () => {
    const gateway = createGateway()
    const verdicts: readonly [RegistryOptions['verify'], number][] = [
      [(token) => token === 'x', 200],
      [async () => false, 401],
      [
        () => {
          throw new Error('directory down')
        },
        401,
      ],
      [() => Promise.reject(new Error('directory down')), 401],
    ]
    for (const [verify, status] of verdicts) {
      const app = new Hono()
      app.onError((error, c) => c.text(error.message, 500)) // the app's own handler has no say in it
      app.route('/gateway', gateway.registry(verify === undefined ? {} : { verify }))
      expect((await send(app, 'GET', '/upstreams', { token: 'x' })).status).toBe(status)
    }
  })
})

describe('tokens and verify', () => {
  it('GWY-1 verify is asked of what no token matches, and the tokens go on to count', async () => {
    const gateway = createGateway()
    const asked: string[] = []
    const verify = (token: string): boolean => {
      asked.push(token)
      return token === 'known'
    }
    const app = new Hono()
    app.route('/gateway', gateway.registry({ tokens: ['one', 'two'], verify }))
    const statuses: number[] = []
    for (const token of ['one', 'two', 'known', 'other'])
      statuses.push((await send(app, 'GET', '/upstreams', { token })).status)
    expect(statuses).toEqual([200, 200, 200, 401])
    expect(asked).toEqual(['known', 'other'])
  })

  it('GWY-1 an unusable token is refused beside verify too', () => {
    const gateway = createGateway()
    for (const tokens of [[''], [TOKEN, 'two words'], ['line\n']]) {
      expect(() => gateway.registry({ tokens, verify: () => true })).toThrow(TypeError)
    }
    expect(() => gateway.registry({ tokens: [], verify: () => true })).not.toThrow()
  })

  it('GWY-1 what verify answers must be true: nothing like it opens the door', async () => {
    const gateway = createGateway()
    for (const answer of [undefined, null, 1, 'true', {}]) {
      const app = new Hono()
      app.route('/gateway', gateway.registry({ verify: () => untyped(answer) }))
      expect((await send(app, 'GET', '/upstreams', { token: 'x' })).status).toBe(401)
    }
  })
})

describe('POST /events', () => {
  it('GWY-1 answers each event of the batch with what the upstream is now', async () => {
    const { app, lists } = setup()
    const response = await send(
      app,
      'POST',
      '/events',
      events(REGISTER_A, { type: 'draining', id: 'a', reason: 'deploy' }),
    )
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({
      revision: 1,
      events: [
        { type: 'register', id: 'a', draining: false, active: 0 },
        { type: 'draining', id: 'a', draining: true, active: 0 },
      ],
    })
    expect(lists()).toEqual([[], [], ['a']])
  })

  it('GWY-1 an unknown, missing or wrongly cased type is 400 and refuses the whole batch', async () => {
    const { app, lists } = setup()
    for (const type of ['REGISTER', 'Heartbeat', 'drain', '', null, 0, ['register'], {}]) {
      const response = await send(app, 'POST', '/events', events(REGISTER_A, { ...REGISTER_A, type }))
      expect(response.status).toBe(400)
      expect(await jsonOf(response)).toMatchObject({
        reason: 'unknown_event_type',
        issues: [{ pointer: '/events/1/type' }],
        total: 1,
      })
    }
    expect((await send(app, 'POST', '/events', events({ id: 'a', url: originOf('a') }))).status).toBe(400)
    expect(lists()).toEqual([[], [], []])
  })

  it('GWY-2 an unknown upstream is 404, an older generation and another URL are 409, each naming its event', async () => {
    const { app, register } = setup()
    register('a', { generation: 2 })
    for (const [event, status, reason] of [
      [{ type: 'heartbeat', id: 'nobody' }, 404, 'unknown_upstream'],
      [{ type: 'draining', id: 'nobody' }, 404, 'unknown_upstream'],
      [{ ...REGISTER_A, generation: 1 }, 409, 'stale_generation'],
      [{ ...REGISTER_A, url: originOf('b') }, 409, 'url_conflict'],
    ] as const) {
      const response = await send(app, 'POST', '/events', events({ type: 'heartbeat', id: 'a' }, event))
      expect(response.status).toBe(status)
      expect(await jsonOf(response)).toMatchObject({ reason, index: 1, id: event.id })
    }
  })

  it('GWY-1 other malformed content is 422 with every issue, broken JSON is 400', async () => {
    const { app } = setup()
    const invalid = await send(app, 'POST', '/events', events({ type: 'register', id: '', url: 'ftp://x' }))
    expect(invalid.status).toBe(422)
    expect(await jsonOf(invalid)).toMatchObject({ reason: 'invalid', total: 2 })
    for (const body of [
      [REGISTER_A],
      'null',
      '7',
      {},
      { events: {} },
      { events: [] },
      { event: [] },
      { events: [], x: 1 },
    ]) {
      expect((await send(app, 'POST', '/events', { body })).status).toBe(422)
    }
    for (const body of ['', '{', '{"events":[}', `{"events":[${'['.repeat(3)}`]) {
      expect((await send(app, 'POST', '/events', { body })).status).toBe(400)
    }
  })

  it('GWY-1 a batch of too many events or bytes is 413, also of undeclared length, and applies nothing', async () => {
    const { app, lists } = setup()
    const many = Array.from({ length: 101 }, (_, index) => ({ ...REGISTER_A, id: `u${index}` }))
    expect((await send(app, 'POST', '/events', events(...many))).status).toBe(413)
    expect((await send(app, 'POST', '/events', events(...many.slice(1)))).status).toBe(200)
    expect(lists()[0]).toHaveLength(100)

    const long = JSON.stringify({ events: [{ ...REGISTER_A, id: 'long' }], pad: 'x'.repeat(300_000) })
    expect(
      (await send(app, 'POST', '/events', { body: long, headers: { 'content-length': `${long.length}` } })).status,
    ).toBe(413)
    expect((await send(app, 'POST', '/events', { body: long })).status).toBe(413)
    expect(lists()[0]).toHaveLength(100)
  })

  it('GWY-1 another media type or a coded body is 415', async () => {
    const { app } = setup()
    const body = { events: [REGISTER_A] }
    for (const headers of [
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/jsonx' },
      { 'content-encoding': 'gzip' },
    ]) {
      expect((await send(app, 'POST', '/events', { body, headers })).status).toBe(415)
    }
    for (const type of ['application/json; charset=utf-8', 'APPLICATION/JSON', 'application/merge+json']) {
      expect((await send(app, 'POST', '/events', { body, headers: { 'content-type': type } })).status).toBe(200)
    }
  })

  it('GWY-1 at most 100 issues are listed, with their total', async () => {
    const { app } = setup()
    const bad: object[] = Array.from({ length: 60 }, () => ({ type: 'register', id: '', url: '', weight: 0 }))
    const answer = await jsonOf(await send(app, 'POST', '/events', events(...bad)))
    expect(answer.issues).toHaveLength(100)
    expect(answer.total).toBeGreaterThan(100)
  })

  it('GWY-1 other methods and routes are 405 with Allow and 404', async () => {
    const { app } = setup()
    const wrong = await send(app, 'GET', '/events')
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST'])
    const other = await send(app, 'DELETE', '/upstreams')
    expect([other.status, other.headers.get('allow')]).toEqual([405, 'GET, HEAD, PUT'])
    expect((await send(app, 'GET', '/')).status).toBe(404)
    expect((await send(app, 'GET', '/upstreams/a')).status).toBe(404)
  })
})

describe('GET and PUT /upstreams', () => {
  it('GWY-3 three disjoint lists that together are the configured set, with leases, probes and counts', async () => {
    const { app, clock, register, drain, gateway } = setup([], { heartbeatTimeoutMs: 100 })
    register('late')
    clock.advance(60)
    for (const id of ['a', 'd']) register(id, { weight: 2 })
    gateway.upstreams.apply([{ type: 'draining', id: 'd', reason: 'deploy' }])
    clock.advance(40)
    const response = await send(app, 'GET', '/upstreams')
    expect(response.headers.get('cache-control')).toBe('no-store')
    const answer = await jsonOf(response)
    expect(answer).toMatchObject({
      revision: gateway.upstreams.revision,
      healthy: [
        { id: 'a', weight: 2, lease: { state: 'live', remainingMs: 60 }, draining: null, active: 0, lastProbe: null },
      ],
      unhealthy: [{ id: 'late', lease: { state: 'expired', remainingMs: 0 } }],
      draining: [{ id: 'd', draining: { forMs: 40, reason: 'deploy' } }],
      desired: [{ id: 'late' }, { id: 'a' }, { id: 'd', draining: { reason: 'deploy' } }],
    })
    drain('a')
    expect((await send(app, 'HEAD', '/upstreams')).status).toBe(200)
  })

  it('GWY-8 a PUT replaces the set from the tag that it was prepared from: 428 without one, 412 when it is stale', async () => {
    const { app, lists, register } = setup(['a'])
    const body = { upstreams: [{ id: 'b', url: originOf('b') }] }
    const tag = (await send(app, 'GET', '/upstreams')).headers.get('etag') ?? ''
    expect(tag).toMatch(/^"[^"]+"$/)
    expect((await send(app, 'PUT', '/upstreams', { body })).status).toBe(428)
    for (const stale of ['"x"', `W/${tag}`, tag.slice(1, -1), '', '"a", "b"']) {
      expect((await send(app, 'PUT', '/upstreams', { body, headers: { 'if-match': stale } })).status).toBe(412)
    }
    expect(lists()).toEqual([['a'], [], []])

    const replaced = await send(app, 'PUT', '/upstreams', { body, headers: { 'if-match': `"x", ${tag}` } })
    expect(replaced.status).toBe(200)
    expect(await jsonOf(replaced)).toMatchObject({ healthy: [{ id: 'b' }], unhealthy: [], draining: [] })
    expect(lists()).toEqual([['b'], [], []])
    expect((await send(app, 'PUT', '/upstreams', { body, headers: { 'if-match': tag } })).status).toBe(412)

    const next = replaced.headers.get('etag') ?? ''
    register('c')
    expect((await send(app, 'PUT', '/upstreams', { body, headers: { 'if-match': next } })).status).toBe(412)
    expect((await send(app, 'PUT', '/upstreams', { body, headers: { 'if-match': '*' } })).status).toBe(200)
    expect(lists()).toEqual([['b'], [], []])
  })

  it('GWY-8 of two PUTs from one tag one wins, and nothing of the other is applied', async () => {
    const { app, lists } = setup(['a'])
    const tag = (await send(app, 'GET', '/upstreams')).headers.get('etag') ?? ''
    const put = (id: string): Promise<Response> =>
      send(app, 'PUT', '/upstreams', { body: { upstreams: [{ id, url: originOf(id) }] }, headers: { 'if-match': tag } })
    const [x, y] = await Promise.all([put('x'), put('y')])
    expect([x.status, y.status].sort()).toEqual([200, 412])
    expect(lists()).toEqual([[x.status === 200 ? 'x' : 'y'], [], []])
  })

  it('GWY-8 heartbeats and health leave the tag as it is; a lease that ended makes it stale', async () => {
    const { app, clock, gateway } = setup(['a'], { heartbeatTimeoutMs: 100 })
    const tag = (await send(app, 'GET', '/upstreams')).headers.get('etag') ?? ''
    clock.advance(50)
    gateway.upstreams.apply([{ type: 'heartbeat', id: 'a' }])
    expect((await send(app, 'GET', '/upstreams')).headers.get('etag')).toBe(tag)
    clock.advance(100)
    const body = { upstreams: [] }
    expect((await send(app, 'PUT', '/upstreams', { body, headers: { 'if-match': tag } })).status).toBe(412)
  })

  it('GWY-8 a tag from before a restart is stale', async () => {
    const tags = await Promise.all(
      [setup(['a']), setup(['a'])].map(async ({ app }) => (await send(app, 'GET', '/upstreams')).headers.get('etag')),
    )
    expect(tags[0]).not.toBe(tags[1])
  })

  it('GWY-8 a PUT is judged by precondition, then JSON, then content, then fit', async () => {
    const { app, register, lists } = setup()
    register('a', { generation: 3 })
    const tag = (await send(app, 'GET', '/upstreams')).headers.get('etag') ?? ''
    const put = async (body: unknown, headers: Record<string, string>): Promise<number> =>
      (await send(app, 'PUT', '/upstreams', { body, headers })).status
    expect(await put('{', {})).toBe(428)
    expect(await put('{', { 'if-match': '"x"' })).toBe(412)
    expect(await put('{', { 'if-match': tag })).toBe(400)
    expect(await put({ upstreams: [{ id: 'a' }] }, { 'if-match': tag })).toBe(422)
    expect(await put({ upstreams: [{ id: 'a', url: originOf('a'), lease: 1 }] }, { 'if-match': tag })).toBe(422)
    expect(await put({ upstreams: [{ id: 'a', url: originOf('a'), generation: 2 }] }, { 'if-match': tag })).toBe(409)
    expect(await put({ upstreams: [], pad: 'x'.repeat(1_100_000) }, {})).toBe(413)
    expect(lists()).toEqual([['a'], [], []])
  })
})

describe('random batches', () => {
  it('GWY-1 whatever JSON is posted, the answer is 200 or an error that has changed nothing', async () => {
    const { app, gateway, register } = setup()
    register('a', { generation: 1 })
    const values = [
      null,
      true,
      -1,
      1e99,
      '',
      'a',
      'register',
      'REGISTER',
      '__proto__',
      [],
      {},
      originOf('a'),
      ['register'],
    ]
    const names = ['type', 'id', 'url', 'generation', 'weight', 'labels', 'props', 'reason', 'constructor']
    let seed = 1
    const next = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % below
    }
    for (let round = 0; round < 300; round += 1) {
      const event = Object.fromEntries(
        Array.from({ length: next(6) }, () => [names[next(names.length)], values[next(values.length)]]),
      )
      const { revision } = gateway.upstreams
      const { status } = await send(app, 'POST', '/events', events(event))
      expect([200, 400, 404, 409, 422]).toContain(status)
      if (status !== 200) expect(gateway.upstreams.revision).toBe(revision)
    }
  })
})
