import { type Context, Hono } from 'hono'
import { describe, expect, it, vi } from 'vitest'
import type { AdminOptions } from '../../src/hono/admin-auth.ts'
import { createAdmission } from '../../src/hono/create-admission.ts'
import { ManualClock } from '../../src/manual-clock.ts'
import { jsonOf, untyped } from './support.ts'

const tokens = { read: ['read-token'], write: ['write-token', 'write-token-2'] } as const

function mount(options: AdminOptions): Hono {
  return new Hono().route('/admission', createAdmission({ clock: new ManualClock() }).admin(options))
}

async function get(app: Hono, authorization?: string, path = '/admission/config'): Promise<Response> {
  return await app.request(path, authorization === undefined ? {} : { headers: { authorization } })
}

describe('admin authentication', () => {
  it.each<[string, AdminOptions]>([
    ['nothing', {}],
    ['no tokens', { tokens: {} }],
    ['empty lists', { tokens: { read: [], write: [] } }],
    ['an empty token', { tokens: { write: [''] } }],
    ['a blank token', { tokens: { write: ['  '] } }],
    ['an empty token beside a good one', { tokens: { read: [''], write: ['good'] } }],
    ['an empty token beside verify', { tokens: { read: [''] }, verify: () => 'read' }],
    ['an unset variable', { tokens: { write: [untyped(undefined)] } }],
    ['a token with a line break', { tokens: { write: ['secret\n'] } }],
    ['a token with a blank', { tokens: { write: ['two words'] } }],
    ['a token that no header can carry', { tokens: { write: ['ключ'] } }],
  ])('ADX-1 with %s admin() throws: it never starts open', (_, options) => {
    expect(() => createAdmission().admin(options)).toThrow(TypeError)
  })

  it('ADX-1 what admin() throws does not show the token', () => {
    expect(() => createAdmission().admin({ tokens: { write: ['se cret'] } })).toThrow(/^(?!.*cret)/)
  })

  it.each([
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'Bearer  ',
    'Bearer wrong',
    'Bearer write-toke',
    'Bearer write-token3',
    'Bearer write-token write-token',
    'Bearer write-token, Bearer x',
    'Bearer "write-token"',
    'Basic write-token',
    'Basic dXNlcjpwYXNz',
    'write-token',
    'Token write-token',
    'Bearerwrite-token',
    'Bearer WRITE-TOKEN',
    `Bearer ${'x'.repeat(8000)}`,
    'Bearer \u00e9\u00e9',
    'Bearer undefined',
    'Bearer null',
  ])('ADX-1 %j is a 401 that says nothing else', async (authorization) => {
    const app = mount({ tokens })
    const known = await get(app, authorization)
    expect(known.status).toBe(401)
    expect(known.headers.get('www-authenticate')).toBe('Bearer')
    expect(known.headers.get('cache-control')).toBe('no-store')
    expect(known.headers.get('etag')).toBeNull()
    const text = await known.text()
    expect(JSON.parse(text)).toEqual({ type: 'about:blank', title: 'Unauthorized', status: 401 })
    // A stranger cannot even tell which paths and methods there are.
    for (const [path, method] of [
      ['/admission/nowhere', 'GET'],
      ['/admission/config', 'DELETE'],
      ['/admission', 'GET'],
      ['/admission/drain', 'POST'],
    ] as const) {
      const init = { method, ...(authorization === undefined ? {} : { headers: { authorization } }) }
      const other = await app.request(path, init)
      expect([other.status, await other.text(), other.headers.get('allow')]).toEqual([401, text, null])
    }
  })

  it.each([
    'Bearer write-token',
    'bearer write-token',
    'BEARER write-token',
    'Bearer   write-token',
    'Bearer read-token',
  ])('ADX-1 %j is let in', async (authorization) => {
    expect((await get(mount({ tokens }), authorization)).status).toBe(200)
  })

  it('ADX-1 every listed token is good, and tokens of RFC 6750 may have padding and signs', async () => {
    const odd = 'aZ09-._~+/=='
    const app = mount({ tokens: { write: ['first', odd] } })
    expect((await get(app, 'Bearer first')).status).toBe(200)
    expect((await get(app, `Bearer ${odd}`)).status).toBe(200)
  })

  it('ADX-1 changing the lists afterwards changes nothing', async () => {
    const write = ['first']
    const app = mount({ tokens: { write } })
    write.push('second')
    expect((await get(app, 'Bearer second')).status).toBe(401)
  })

  it('ADX-1 verify decides for tokens that are not listed', async () => {
    const verify = vi.fn(async (token: string, _c: Context) => (token === 'good' ? ('read' as const) : false))
    const app = mount({ tokens, verify })
    expect((await get(app, 'Bearer good')).status).toBe(200)
    expect((await get(app, 'Bearer bad')).status).toBe(401)
    expect(verify).toHaveBeenCalledTimes(2)
    expect((await get(app, 'Bearer read-token')).status).toBe(200)
    expect(verify).toHaveBeenCalledTimes(2)
    expect(verify.mock.calls[0]?.[1]?.req.path).toBe('/admission/config')
  })

  it('ADX-1 an error of verify counts as false, and so does any answer but the roles', async () => {
    const app = (answer: () => unknown): Hono => mount({ verify: async () => untyped(answer()) })
    for (const answer of [true, 1, 'admin', 'WRITE', null, undefined, {}, ['write']]) {
      expect(
        (
          await get(
            app(() => answer),
            'Bearer x',
          )
        ).status,
      ).toBe(401)
    }
    const rejects = app(() => {
      throw new Error('secret detail')
    })
    const failed = await get(rejects, 'Bearer x')
    expect([failed.status, (await failed.text()).includes('secret')]).toEqual([401, false])
    const throws = mount({
      verify: () => {
        throw new Error('at once')
      },
    })
    expect((await get(throws, 'Bearer x')).status).toBe(401)
  })

  it('ADX-1 the role of a request is its own, however many are under way', async () => {
    const app = mount({ tokens })
    const drain = (token: string): Promise<Response> =>
      Promise.resolve(
        app.request('/admission/drain', { method: 'POST', headers: { authorization: `Bearer ${token}` } }),
      )
    const answers = await Promise.all(['read-token', 'write-token', 'bad', 'read-token', 'write-token'].map(drain))
    expect(answers.map((answer) => answer.status)).toEqual([403, 200, 401, 403, 200])
  })

  it('ADX-1 a token that is listed for both roles may write', async () => {
    const app = mount({ tokens: { read: ['both'], write: ['both'] } })
    const response = await app.request('/admission/resume', {
      method: 'POST',
      headers: { authorization: 'Bearer both' },
    })
    expect(response.status).toBe(200)
  })

  it('ADX-7 a read token may read and plan, and gets 403 on every writing route', async () => {
    const app = mount({ tokens })
    const headers = { authorization: 'Bearer read-token', 'content-type': 'application/json', 'if-match': '*' }
    for (const path of ['config', 'state', 'metrics']) {
      expect((await app.request(`/admission/${path}`, { headers })).status).toBe(200)
    }
    const plan = await app.request('/admission/plan', { method: 'POST', headers, body: '{}' })
    expect(plan.status).toBe(200)
    for (const [method, path] of [
      ['PUT', 'config'],
      ['POST', 'enable'],
      ['POST', 'disable'],
      ['POST', 'drain'],
      ['POST', 'resume'],
    ]) {
      const response = await app.request(`/admission/${path}`, { method: method ?? '', headers, body: '{}' })
      expect(response.status).toBe(403)
      expect((await jsonOf(response)).status).toBe(403)
    }
  })
})
