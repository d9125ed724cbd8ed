import { Hono } from 'hono'
import { describe, expect, it, vi } from 'vitest'
import type { PublishEvent } from '../../src/control/reporter.ts'
import type { ConfigIssue } from '../../src/errors.ts'
import { type Admission, type AdmissionOptions, createAdmission } from '../../src/hono/create-admission.ts'
import { MAX_BODY_BYTES } from '../../src/hono/json-body.ts'
import { ManualClock } from '../../src/manual-clock.ts'
import { jsonOf, untyped } from './support.ts'

const ten = { global: { concurrency: 10 } } as const
const rate = { algorithm: 'fixed-window', permitLimit: 1, windowMs: 1000 } as const

class Operator {
  readonly admission: Admission
  readonly app: Hono

  constructor(options: AdmissionOptions = {}) {
    this.admission = createAdmission({ clock: new ManualClock(), ...options })
    this.app = new Hono()
    this.app.use(this.admission.middleware())
    this.app.route('/admission', this.admission.admin({ tokens: { read: ['r'], write: ['w', 'w2'] } }))
    this.app.get('/', (c) => c.text('ok'))
  }

  async send(
    method: string,
    path: string,
    init: RequestInit & { headers?: Record<string, string> } = {},
  ): Promise<Response> {
    const headers = { authorization: 'Bearer w', ...init.headers }
    return await this.app.request(`/admission${path}`, { ...init, method, headers })
  }

  /** Sends JSON, as text when it is text already, with `If-Match` when a tag is given. */
  async write(method: string, path: string, body?: unknown, tag?: string, token = 'w'): Promise<Response> {
    return await this.send(method, path, {
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(tag === undefined ? {} : { 'if-match': tag }),
      },
    })
  }

  /** As {@link write}; the body arrives when told to. */
  writeSlowly(method: string, path: string, body: string, tag: string): { finish(): Promise<Response> } {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
    const init: RequestInit & { duplex: 'half'; headers: Record<string, string> } = {
      body: readable,
      duplex: 'half',
      headers: { 'content-type': 'application/json', 'if-match': tag },
    }
    const response = this.send(method, path, init)
    return {
      finish: async () => {
        const writer = writable.getWriter()
        void writer.write(new TextEncoder().encode(body))
        void writer.close()
        return await response
      },
    }
  }

  async tag(): Promise<string> {
    return (await this.send('GET', '/config')).headers.get('etag') ?? 'no tag'
  }
}

async function problem(response: Response): Promise<Record<string, unknown>> {
  expect(response.headers.get('content-type')).toBe('application/problem+json')
  expect(response.headers.get('cache-control')).toBe('no-store')
  const body = await jsonOf(response)
  expect(body).toMatchObject({ type: 'about:blank', status: response.status })
  expect(typeof body.title).toBe('string')
  return body
}

describe('GET /config', () => {
  it('ADX-3 answers state, draining, generation and config with a strong tag', async () => {
    const operator = new Operator({ config: ten })
    const response = await operator.send('GET', '/config')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('etag')).toMatch(/^"[0-9a-z]+-1-enabled"$/)
    expect(await response.json()).toEqual({ state: 'enabled', draining: false, generation: 1, config: ten })
  })

  it('ADX-3 while disabled the config is null', async () => {
    const response = await new Operator().send('GET', '/config')
    expect(await response.json()).toEqual({ state: 'disabled', draining: false, generation: 0, config: null })
  })

  it('ADX-3 the tag changes with generation and state, and not with draining', async () => {
    const operator = new Operator({ config: ten })
    const { core } = operator.admission
    const first = await operator.tag()
    expect(await operator.tag()).toBe(first)
    core.drain()
    expect(await operator.tag()).toBe(first)
    core.disable()
    const disabled = await operator.tag()
    core.enable(ten)
    const again = await operator.tag()
    await core.stop()
    expect(new Set([first, disabled, again, await operator.tag()]).size).toBe(4)
  })

  it('ADX-3 a tag from before a restart is stale, and all admin routes of one admission share theirs', async () => {
    const [before, after] = [new Operator({ config: ten }), new Operator({ config: ten })]
    const tag = await before.tag()
    expect((await after.write('PUT', '/config', ten, tag)).status).toBe(412)
    const other = new Hono().route('/x', before.admission.admin({ tokens: { read: ['other'] } }))
    const response = await other.request('/x/config', { headers: { authorization: 'Bearer other' } })
    expect(response.headers.get('etag')).toBe(tag)
  })

  it('ADX-2 HEAD works where GET does', async () => {
    const operator = new Operator({ config: ten })
    const response = await operator.send('HEAD', '/config')
    expect([response.status, response.headers.get('etag'), await response.text()]).toEqual([
      200,
      await operator.tag(),
      '',
    ])
  })
})

describe('PUT /config', () => {
  it('ADX-7 answers 200 with the new state and tag, and the limit is live', async () => {
    const operator = new Operator({ config: ten })
    const response = await operator.write('PUT', '/config', { global: { concurrency: 0 } }, await operator.tag())
    expect(response.status).toBe(200)
    expect(response.headers.get('etag')).toBe(await operator.tag())
    expect(await response.json()).toMatchObject({
      state: 'enabled',
      generation: 2,
      config: { global: { concurrency: 0 } },
    })
    expect((await operator.app.request('/')).status).toBe(503)
  })

  it('ADX-6 the admin route answers while the server is full and while it drains', async () => {
    const operator = new Operator({ config: { global: { concurrency: 0 } } })
    operator.admission.core.drain()
    expect((await operator.app.request('/')).status).toBe(503)
    expect((await operator.write('PUT', '/config', ten, await operator.tag())).status).toBe(200)
    expect((await operator.write('POST', '/resume')).status).toBe(200)
    expect((await operator.app.request('/')).status).toBe(200)
    expect(operator.admission.core.snapshot().totals.admitted).toBe(1)
  })

  it('ADX-2 a missing or empty If-Match is 428, a stale one 412, each with the current tag; nothing changes', async () => {
    const operator = new Operator({ config: ten })
    const tag = await operator.tag()
    for (const [field, status] of [
      [undefined, 428],
      ['', 428],
      ['  ', 428],
      ['"stale"', 412],
      [tag.slice(1, -1), 412],
      [`W/${tag}`, 412],
      [`"a", W/${tag}`, 412],
      [`${tag}x`, 412],
    ] as const) {
      const response = await operator.write('PUT', '/config', {}, field)
      expect([field, response.status]).toEqual([field, status])
      expect(response.headers.get('etag')).toBe(tag)
      await problem(response)
    }
    expect(operator.admission.core.generation).toBe(1)
  })

  it('ADX-7 If-Match takes a list and a star', async () => {
    const operator = new Operator({ config: ten })
    expect((await operator.write('PUT', '/config', ten, `"a", ${await operator.tag()}, W/"b"`)).status).toBe(200)
    expect((await operator.write('PUT', '/config', ten, '*')).status).toBe(200)
    expect(operator.admission.core.generation).toBe(3)
  })

  it('ADX-2 an invalid candidate is 422 with every issue, and nothing changes', async () => {
    const operator = new Operator({ config: ten })
    const bad = { global: { concurrency: -1 }, contracts: { '/a': { concurrency: 'x', windowMS: 1 } }, unknown: {} }
    const response = await operator.write('PUT', '/config', bad, await operator.tag())
    expect(response.status).toBe(422)
    const body = await problem(response)
    const pointers = untyped(body.issues).map((issue: ConfigIssue) => issue.pointer)
    expect(pointers.sort()).toEqual([
      '/contracts/~1a/concurrency',
      '/contracts/~1a/windowMS',
      '/global/concurrency',
      '/unknown',
    ])
    expect(body.total).toBe(4)
    expect(operator.admission.core.generation).toBe(1)
  })

  it('ADX-2 at most 100 issues are listed, with their total and short texts', async () => {
    const operator = new Operator({ config: ten })
    const contracts = Object.fromEntries(Array.from({ length: 250 }, (_, i) => [`/${i}`, { concurrency: -1 }]))
    const body = await problem(await operator.write('PUT', '/config', { contracts }, '*'))
    expect(body.issues).toHaveLength(100)
    expect(body.total).toBe(250)
    const long = await operator.write('PUT', '/config', { [`secret${'x'.repeat(100_000)}`]: 1 }, '*')
    expect(long.status).toBe(422)
    expect((await long.text()).length).toBeLessThan(5000)
  })

  it('ADX-2 a selector nobody registered is a 422', async () => {
    const operator = new Operator({ config: ten })
    const partitions = { nobody: { concurrency: 1 } }
    expect((await operator.write('PUT', '/config', { global: { partitions } }, '*')).status).toBe(422)
  })

  it.each([null, 7, 'x', true, [], [ten]])('ADX-2 the JSON value %j is no configuration: 422', async (value) => {
    const operator = new Operator({ config: ten })
    expect((await operator.write('PUT', '/config', JSON.stringify(value), '*')).status).toBe(422)
  })

  it.each([
    '',
    '{',
    '{"global": {"concurrency": 1}',
    "{'global': {}}",
    '{"a": 1,}',
    '{"secret-of-mine": tru}',
    'undefined',
    'NaN',
    '{} {}',
    '\u0000',
  ])('ADX-2 %j is broken JSON: 400, and is not echoed', async (text) => {
    const operator = new Operator({ config: ten })
    const response = await operator.write('PUT', '/config', text, '*')
    expect(response.status).toBe(400)
    expect(JSON.stringify(await problem(response))).not.toContain('secret')
  })

  it('ADX-2 bytes that are no UTF-8 are broken JSON, and a byte order mark is not', async () => {
    const operator = new Operator({ config: ten })
    const put = (body: Uint8Array<ArrayBuffer>): Promise<Response> =>
      operator.send('PUT', '/config', { body, headers: { 'content-type': 'application/json', 'if-match': '*' } })
    expect((await put(new Uint8Array([0x22, 0xff, 0x22]))).status).toBe(400)
    expect((await put(new Uint8Array([0xef, 0xbb, 0xbf, 0x7b, 0x7d]))).status).toBe(200)
  })

  it('ADX-2 characters that are split between pieces of a body are whole, and one that breaks off is broken JSON', async () => {
    const operator = new Operator({ config: ten })
    const id = `/${'é'.repeat(1000)}`
    const bytes = new TextEncoder().encode(JSON.stringify({ contracts: { [id]: {} } }))
    const put = (...pieces: Uint8Array[]): Promise<Response> => {
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          for (const piece of pieces) controller.enqueue(piece)
          controller.close()
        },
      })
      const init: RequestInit & { duplex: 'half'; headers: Record<string, string> } = {
        body,
        duplex: 'half',
        headers: { 'content-type': 'application/json', 'if-match': '*' },
      }
      return operator.send('PUT', '/config', init)
    }
    const response = await put(...Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)))
    expect(await jsonOf(response)).toMatchObject({ config: { contracts: { [id]: {} } } })
    expect((await put(bytes, new Uint8Array([0xc3]))).status).toBe(400)
  })

  it('PUB-4 ADX-3 a large candidate is answered with what it published, and the tag of that', async () => {
    const contracts = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`/area-${at}`, { concurrency: 1 }]))
    const overtaken: Promise<unknown>[] = []
    const overtake = async (): Promise<void> => {
      // Later than the operator's own update goes on, sooner than the next turn of the event loop.
      for (let microtask = 0; microtask < 100; microtask += 1) await Promise.resolve()
      operator.admission.core.disable()
    }
    const onPublish = ({ to }: PublishEvent): void => {
      if (to.state === 'enabled' && to.generation === 2) overtaken.push(overtake())
    }
    const operator = new Operator({ config: ten, onPublish })
    const response = await operator.write('PUT', '/config', { contracts }, '*')
    await Promise.all(overtaken)
    expect(await jsonOf(response)).toMatchObject({ state: 'enabled', generation: 2, config: { contracts } })
    expect((await operator.write('PUT', '/config', ten, response.headers.get('etag') ?? '')).status).toBe(412)
  })

  it.each([
    ['changes a rate', { global: { rate } }],
    ['is not valid', { global: { concurrency: -1 } }],
  ])('ADX-2 who is overtaken is told so first, also when the candidate %s', async (_, wrong) => {
    const contracts = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`/area-${at}`, { concurrency: 1 }]))
    const operator = new Operator({ config: ten })
    const { core } = operator.admission
    const update = core.update.bind(core)
    vi.spyOn(core, 'update').mockImplementation((...asked) => {
      const updating = update(...asked) // not through yet
      core.disable()
      core.enable(ten)
      return updating
    })
    const tag = await operator.tag()
    const response = await operator.write('PUT', '/config', { ...wrong, contracts }, tag)
    expect(response.status).toBe(412)
    expect(response.headers.get('etag')).toBe(await operator.tag())
    expect(core.generation).toBe(2)
  })

  it('ADX-2 a body of nothing but brackets is answered, however deep', async () => {
    const operator = new Operator({ config: ten })
    for (const [open, close] of [
      ['[', ']'],
      ['{"global":', '}'],
    ] as const) {
      const depth = Math.floor(MAX_BODY_BYTES / (open.length + close.length)) - 2
      for (const text of [open.repeat(depth), `${open.repeat(depth)}1${close.repeat(depth)}`]) {
        const response = await operator.write('PUT', '/config', text, '*')
        expect([400, 422]).toContain(response.status)
        expect((await response.text()).length).toBeLessThan(5000)
      }
    }
    expect(operator.admission.core.generation).toBe(1)
  })

  it('ADX-2 of duplicate keys the last counts', async () => {
    const operator = new Operator({ config: ten })
    await operator.write(
      'PUT',
      '/config',
      '{"global":{"concurrency":1},"global":{"concurrency":2,"concurrency":3}}',
      '*',
    )
    expect(operator.admission.core.config).toEqual({ global: { concurrency: 3 } })
  })

  it('CFG-2 ids that collide with object internals survive, there and back', async () => {
    const operator = new Operator({ config: ten })
    const text =
      '{"contracts":{"__proto__":{"concurrency":1,"methods":{"constructor":{"concurrency":2}}},"toString":{"concurrency":3}}}'
    const response = await operator.write('PUT', '/config', text, '*')
    expect(response.status).toBe(200)
    const names = operator.admission.core.snapshot().scopes.map((scope) => scope.scope)
    expect(names.sort()).toEqual(['contract:__proto__', 'contract:toString', 'method:__proto__ constructor'])
    expect(await response.text()).toContain('"__proto__":{"concurrency":1')
    expect(Reflect.get({}, 'concurrency')).toBeUndefined()
    const again = JSON.stringify(operator.admission.core.config)
    expect((await operator.write('PUT', '/config', again, '*')).status).toBe(200)
  })

  it('CFG-2 ids of every script survive', async () => {
    const operator = new Operator({ config: ten })
    const contracts = {
      '/заказы': { concurrency: 1 },
      '/注文/:id': { concurrency: 2 },
      '/🚚 "x"\\': { concurrency: 3 },
    }
    const response = await operator.write('PUT', '/config', { contracts }, '*')
    expect((await jsonOf(response)).config).toEqual({ contracts })
    expect((await operator.send('GET', '/metrics')).status).toBe(200)
  })

  it('PUB-9 an unsupported transition is 409 with its paths', async () => {
    const operator = new Operator({ config: ten })
    const contracts = { '/a': { rate }, '/b': { methods: { 'GET /b': { rate } } } }
    const response = await operator.write('PUT', '/config', { ...ten, contracts }, await operator.tag())
    expect(response.status).toBe(409)
    const body = await problem(response)
    expect(body).toMatchObject({ paths: ['/contracts/~1a/rate', '/contracts/~1b/methods/GET ~1b/rate'], total: 2 })
    expect(operator.admission.core.generation).toBe(1)
  })

  it('ADX-2 while disabled it is 409, and 422 before that', async () => {
    const operator = new Operator()
    expect((await operator.write('PUT', '/config', ten, await operator.tag())).status).toBe(409)
    expect((await operator.write('PUT', '/config', { global: 1 }, await operator.tag())).status).toBe(422)
  })

  it('ADX-4 of two operators who start from one tag one wins, and nothing of the other is applied', async () => {
    const operator = new Operator({ config: ten })
    const tag = await operator.tag()
    const answers = await Promise.all([
      operator.write('PUT', '/config', { global: { concurrency: 1 } }, tag),
      operator.write('PUT', '/config', { global: { concurrency: 2 } }, tag),
      operator.write('PUT', '/config', { global: { concurrency: 3 } }, tag),
    ])
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 412, 412])
    const winner = answers.findIndex((answer) => answer.status === 200)
    expect(operator.admission.core.config).toEqual({ global: { concurrency: winner + 1 } })
    expect(operator.admission.core.generation).toBe(2)
    expect(answers[(winner + 1) % 3]?.headers.get('etag')).toBe(await operator.tag())
  })

  it('ADX-4 a body that arrives after another operator has won is 412', async () => {
    const operator = new Operator({ config: ten })
    const tag = await operator.tag()
    const slow = operator.writeSlowly('PUT', '/config', '{}', tag)
    await operator.write('PUT', '/config', { global: { concurrency: 1 } }, tag)
    expect((await slow.finish()).status).toBe(412)
    expect(operator.admission.core.config).toEqual({ global: { concurrency: 1 } })
  })

  it('ADX-2 whoever is overtaken by disable gets 412, and 409 when any state would have been right', async () => {
    for (const [match, status] of [
      [undefined, 412],
      ['*', 409],
    ] as const) {
      const operator = new Operator({ config: ten })
      const slow = operator.writeSlowly('PUT', '/config', '{}', match ?? (await operator.tag()))
      operator.admission.core.disable()
      const response = await slow.finish()
      expect(response.status).toBe(status)
      expect(operator.admission.core.state).toBe('disabled')
    }
  })
})

describe('bodies', () => {
  it.each([
    ['application/json', 200],
    ['Application/JSON; charset=utf-8', 200],
    ['application/json;', 200],
    ['text/plain', 415],
    ['application/jsonx', 415],
    ['application/problem+json', 415],
    ['text/json', 415],
    ['', 415],
    ['multipart/form-data; boundary=application/json', 415],
  ])('ADX-2 the media type %j is answered with %i', async (type, status) => {
    const operator = new Operator({ config: ten })
    const headers = { 'content-type': type, 'if-match': '*' }
    expect((await operator.send('PUT', '/config', { body: '{}', headers })).status).toBe(status)
  })

  it('ADX-2 no media type and a content coding are 415', async () => {
    const operator = new Operator({ config: ten })
    const body = new Uint8Array([0x7b, 0x7d])
    expect((await operator.send('PUT', '/config', { body, headers: { 'if-match': '*' } })).status).toBe(415)
    const headers = { 'content-type': 'application/json', 'if-match': '*', 'content-encoding': 'gzip' }
    expect((await operator.send('PUT', '/config', { body, headers })).status).toBe(415)
  })

  const padded = (bytes: number): string => `{${' '.repeat(bytes - 2)}}`

  it('ADX-2 1 MiB is accepted and one byte more is 413, with and without Content-Length', async () => {
    const operator = new Operator({ config: ten })
    for (const [bytes, status] of [
      [MAX_BODY_BYTES, 200],
      [MAX_BODY_BYTES + 1, 413],
    ] as const) {
      for (const length of [{}, { 'content-length': String(bytes) }]) {
        const headers = { 'content-type': 'application/json', 'if-match': '*', ...length }
        expect((await operator.send('PUT', '/config', { body: padded(bytes), headers })).status).toBe(status)
      }
    }
  })

  it('ADX-2 a body that never ends is stopped at the limit, whatever length it declares', async () => {
    const operator = new Operator({ config: ten })
    for (const length of [{}, { 'content-length': '2' }]) {
      let pulled = 0
      const body = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          pulled += 1
          controller.enqueue(new Uint8Array(65_536))
        },
      })
      const init: RequestInit & { duplex: 'half'; headers: Record<string, string> } = {
        body,
        duplex: 'half',
        headers: { 'content-type': 'application/json', 'if-match': '*', ...length },
      }
      const response = await operator.send('POST', '/plan', init)
      expect(response.status).toBe(413)
      expect(pulled).toBeLessThan(20)
    }
  })

  it('ADX-2 what is wrong is judged in one order', async () => {
    const operator = new Operator({ config: ten })
    const send = async (
      step: Partial<{ token: string; path: string; method: string; type: string; body: string; match: string }>,
    ): Promise<number> => {
      const all = {
        token: 'bad',
        path: '/nowhere',
        method: 'DELETE',
        type: 'text/plain',
        body: padded(2 ** 20 + 1),
        ...step,
      }
      const headers = {
        authorization: `Bearer ${all.token}`,
        'content-type': all.type,
        ...(all.match === undefined ? {} : { 'if-match': all.match }),
      }
      return (await operator.send(all.method, all.path, { body: all.body, headers })).status
    }
    const steps: [Parameters<typeof send>[0], number][] = [
      [{}, 401],
      [{ token: 'r' }, 404],
      [{ path: '/config' }, 405],
      [{ method: 'PUT' }, 403],
      [{ token: 'w' }, 415],
      [{ type: 'application/json' }, 413],
      [{ body: '{' }, 428],
      [{ match: '"stale"' }, 412],
      [{ match: '*' }, 400],
      [{ body: '{"global":1}' }, 422],
      [{ body: JSON.stringify({ global: { rate } }) }, 409],
      [{ body: '{}' }, 200],
    ]
    let request = {}
    for (const [step, status] of steps) {
      request = { ...request, ...step }
      expect(await send(request)).toBe(status)
    }
  })
})

describe('paths and methods', () => {
  it('ADX-2 a known path with another method is 405 with Allow, an unknown one 404', async () => {
    const operator = new Operator()
    for (const [method, path, allow] of [
      ['DELETE', '/config', 'GET, HEAD, PUT'],
      ['POST', '/config', 'GET, HEAD, PUT'],
      ['OPTIONS', '/config', 'GET, HEAD, PUT'],
      ['GET', '/plan', 'POST'],
      ['HEAD', '/drain', 'POST'],
      ['PUT', '/enable', 'POST'],
      ['POST', '/state', 'GET, HEAD'],
      ['PURGE', '/metrics', 'GET, HEAD'],
    ] as const) {
      const response = await operator.send(method, path)
      expect([response.status, response.headers.get('allow')]).toEqual([405, allow])
      if (method !== 'HEAD') await problem(response)
    }
    for (const path of ['', '/', '/nowhere', '/config/', '/Config', '/config/x', '/%63onfigs']) {
      expect((await operator.send('GET', path)).status).toBe(404)
    }
  })

  it('ADX-6 it works mounted deep, below onError, with a base path, and twice', async () => {
    const admission = createAdmission({ clock: new ManualClock(), config: { global: { concurrency: 0 } } })
    const admin = admission.admin({ tokens: { write: ['w'] } })
    const sub = new Hono().use(admission.middleware()).route('/:area/admission', admin)
    sub.onError((_, c) => c.text('hidden', 500))
    const app = new Hono().basePath('/api').use(admission.middleware()).route('/v1', sub).route('/ops', admin)
    const headers = { authorization: 'Bearer w' }
    for (const path of ['/api/v1/x/admission', '/api/ops']) {
      expect((await app.request(`${path}/config`, { headers })).status).toBe(200)
      expect((await app.request(`${path}/nowhere`, { headers })).status).toBe(404)
      expect((await app.request(`${path}/config`)).status).toBe(401)
    }
    expect(admission.core.snapshot()).toMatchObject({ active: 0, totals: { refused: { concurrency: 0 } } })
  })

  it('WEB-6 headers that the app prepared reach the operator', async () => {
    const admission = createAdmission()
    const app = new Hono()
    app.use(async (c, next) => {
      c.header('X-Request-Id', '7')
      await next()
    })
    app.route('/admission', admission.admin({ tokens: { read: ['r'] } }))
    expect((await app.request('/admission/config')).headers.get('x-request-id')).toBe('7')
  })
})

describe('the other writers', () => {
  it('ADX-7 enable and disable answer the new state and tag, need If-Match, and are 409 in the wrong state', async () => {
    const operator = new Operator()
    expect((await operator.write('POST', '/enable', ten)).status).toBe(428)
    expect((await operator.write('POST', '/disable')).status).toBe(428)
    expect((await operator.write('POST', '/disable', undefined, '*')).status).toBe(409)
    expect((await operator.write('POST', '/enable', ten, '"stale"')).status).toBe(412)
    expect((await operator.write('POST', '/enable', { global: 1 }, '*')).status).toBe(422)
    const enabled = await operator.write('POST', '/enable', ten, await operator.tag())
    expect(enabled.status).toBe(200)
    expect(enabled.headers.get('etag')).toBe(await operator.tag())
    expect(await enabled.json()).toEqual({ state: 'enabled', draining: false, generation: 1, config: ten })
    expect((await operator.write('POST', '/enable', ten, '*')).status).toBe(409)
    const disabled = await operator.write('POST', '/disable', undefined, await operator.tag())
    expect(await disabled.json()).toEqual({ state: 'disabled', draining: false, generation: 1, config: null })
    expect(disabled.headers.get('etag')).toBe(await operator.tag())
  })

  it('ADX-7 disable does not look at a body', async () => {
    const operator = new Operator({ config: ten })
    const headers = { 'content-type': 'text/plain', 'if-match': '*' }
    expect((await operator.send('POST', '/disable', { body: 'anything', headers })).status).toBe(200)
  })

  it('ADX-8 plan answers 200 with what an update would do, refusals being data, and changes nothing', async () => {
    const operator = new Operator({ config: ten })
    const response = await operator.write('POST', '/plan', { global: { concurrency: 20, rate } })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({
      resized: [{ pointer: '/global/concurrency', scope: 'global', from: 10, to: 20 }],
      refusals: ['/global/rate'],
    })
    expect(operator.admission.core.config).toEqual(ten)
    expect((await operator.write('POST', '/plan', { global: 1 })).status).toBe(422)
    expect((await operator.write('POST', '/plan', '{')).status).toBe(400)
    expect((await operator.write('POST', '/plan')).status).toBe(415)
  })

  it('ADX-8 plan works while disabled, too', async () => {
    const response = await new Operator().write('POST', '/plan', { global: { concurrency: 1, rate } })
    expect(await response.json()).toMatchObject({ added: [{ scope: 'global', from: null, to: 1 }], refusals: [] })
  })

  it('ADX-8 drain and resume answer state and draining, twice the same', async () => {
    const operator = new Operator({ config: ten })
    for (let time = 0; time < 2; time += 1) {
      const response = await operator.write('POST', '/drain')
      expect([response.status, await response.json()]).toEqual([200, { state: 'enabled', draining: true }])
    }
    expect((await operator.app.request('/')).status).toBe(503)
    for (let time = 0; time < 2; time += 1) {
      const response = await operator.write('POST', '/resume')
      expect([response.status, await response.json()]).toEqual([200, { state: 'enabled', draining: false }])
    }
    expect((await operator.app.request('/')).status).toBe(200)
  })

  it('ADX-8 drain takes an announcement', async () => {
    const operator = new Operator({ config: ten })
    expect((await operator.write('POST', '/drain', { announceMs: 1000 })).status).toBe(200)
    expect(operator.admission.core.snapshot()).toMatchObject({ draining: true, announcing: true })
    expect((await operator.app.request('/')).status).toBe(200)
    expect((await operator.write('POST', '/drain', {})).status).toBe(200)
    expect(operator.admission.core.snapshot()).toMatchObject({ announcing: false })
  })

  it.each([
    ['{"announceMs":-1}', 422],
    ['{"announceMs":1.5}', 422],
    ['{"announceMs":"1"}', 422],
    ['{"announceMs":null}', 422],
    ['{"announceMs":2147483648}', 422],
    ['{"announceMS":1}', 422],
    ['{"__proto__":1}', 422],
    ['[]', 422],
    ['null', 422],
    ['7', 422],
    ['{', 400],
  ])('ADX-8 drain refuses the body %j with %i, and does not drain', async (body, status) => {
    const operator = new Operator({ config: ten })
    const response = await operator.write('POST', '/drain', body)
    expect(response.status).toBe(status)
    await problem(response)
    expect(operator.admission.core.draining).toBe(false)
  })

  it('ADX-8 an empty body of drain needs no media type, another one does', async () => {
    const operator = new Operator({ config: ten })
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    expect((await operator.send('POST', '/drain', { body: '', headers: form })).status).toBe(200)
    expect((await operator.send('POST', '/drain', { headers: { ...form, 'content-length': '0' } })).status).toBe(200)
    operator.admission.core.resume()
    expect((await operator.send('POST', '/drain', { body: '{}', headers: form })).status).toBe(415)
    expect(
      (await operator.send('POST', '/drain', { body: '{}', headers: { ...form, 'content-length': '2' } })).status,
    ).toBe(415)
    expect((await operator.send('POST', '/drain', { body: new Uint8Array(2) })).status).toBe(415)
    expect(operator.admission.core.draining).toBe(false)
  })

  it('DRN-6 after stop every writer is 409, drain and resume too, and reading goes on', async () => {
    const operator = new Operator({ config: ten })
    await operator.admission.core.stop()
    const tag = await operator.tag()
    for (const [method, path, body] of [
      ['PUT', '/config', {}],
      ['POST', '/enable', {}],
      ['POST', '/disable', undefined],
      ['POST', '/drain', undefined],
      ['POST', '/resume', undefined],
    ] as const) {
      expect((await operator.write(method, path, body, tag)).status).toBe(409)
    }
    for (const path of ['/config', '/state', '/metrics']) expect((await operator.send('GET', path)).status).toBe(200)
    expect((await jsonOf(await operator.send('GET', '/config'))).state).toBe('stopped')
  })
})

describe('GET /state and /metrics', () => {
  it('API-4 state is the snapshot', async () => {
    const operator = new Operator({ config: ten })
    await operator.app.request('/')
    const response = await operator.send('GET', '/state', { headers: { authorization: 'Bearer r' } })
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(await response.json()).toEqual(operator.admission.core.snapshot())
  })

  it('ADX-2 metrics are in the text format of Prometheus', async () => {
    const response = await new Operator({ config: ten }).send('GET', '/metrics')
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(await response.text()).toContain('sluice_limit{scope="global",kind="concurrency"} 10\n')
  })
})

describe('onPublish', () => {
  it('ADX-5 every change is reported: who, from, to and plan, and never a token', async () => {
    const events: PublishEvent[] = []
    const operator = new Operator({ onPublish: (event) => void events.push(event) })
    await operator.write('POST', '/enable', ten, '*')
    await operator.write('PUT', '/config', { global: { concurrency: 20 } }, '*', 'w2')
    await operator.write('POST', '/drain', { announceMs: 1000 })
    await operator.write('POST', '/resume')
    await operator.write('POST', '/resume')
    await operator.write('POST', '/disable', undefined, '*')
    await operator.write('POST', '/disable', undefined, '*')
    const w = { role: 'write', index: 0 }
    expect(events.map(({ who }) => who)).toEqual([w, { role: 'write', index: 1 }, w, w, w])
    expect(events.map(({ from, to }) => [from.state, to.state, to.draining, to.generation])).toEqual([
      ['disabled', 'enabled', false, 1],
      ['enabled', 'enabled', false, 2],
      ['enabled', 'enabled', true, 2],
      ['enabled', 'enabled', false, 2],
      ['enabled', 'disabled', false, 2],
    ])
    expect(events[1]?.plan?.resized).toHaveLength(1)
    expect(JSON.stringify(events)).not.toContain('Bearer')
  })

  it('ADX-5 for verify, who is the role', async () => {
    const events: PublishEvent[] = []
    const admission = createAdmission({ onPublish: (event) => void events.push(event) })
    const app = new Hono().route('/admission', admission.admin({ verify: () => 'write' }))
    await app.request('/admission/drain', { method: 'POST', headers: { authorization: 'Bearer my-token' } })
    expect(events.map(({ who }) => who)).toEqual([{ role: 'write' }])
  })

  it('ADX-6 a hook that throws or rejects changes nothing and fails nobody', async () => {
    for (const onPublish of [
      () => {
        throw new Error('mine')
      },
      () => Promise.reject(new Error('mine')),
    ]) {
      const operator = new Operator({ config: ten, onPublish })
      expect((await operator.write('PUT', '/config', {}, '*')).status).toBe(200)
      expect((await operator.write('POST', '/drain')).status).toBe(200)
      expect(operator.admission.core.config).toEqual({})
    }
  })
})
