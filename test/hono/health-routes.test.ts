import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import { serve } from './support.ts'

const full = { global: { concurrency: 0 } } as const

describe('health routes', () => {
  it('DRN-4 /livez is 200 and /readyz tells whether new calls are welcome, in every state', async () => {
    const { admission, app } = serve()
    app.route('/', admission.health())
    const { core } = admission
    const statuses = async (): Promise<number[]> =>
      Promise.all(['/livez', '/readyz'].map(async (path) => (await app.request(path)).status))
    expect(await statuses()).toEqual([200, 200])
    core.enable(full)
    expect(await statuses()).toEqual([200, 200])
    core.drain({ announceMs: 1000 })
    expect(await statuses()).toEqual([200, 503])
    core.drain()
    expect(await statuses()).toEqual([200, 503])
    core.resume()
    expect(await statuses()).toEqual([200, 200])
    core.disable()
    core.drain()
    expect(await statuses()).toEqual([200, 503])
    await core.stop()
    expect(await statuses()).toEqual([200, 503])
  })

  it('DRN-4 answers are not stored, and HEAD is answered like GET', async () => {
    const { admission, app } = serve()
    app.route('/health', admission.health())
    admission.core.drain()
    const head = await app.request('/health/readyz', { method: 'HEAD' })
    expect([head.status, head.headers.get('cache-control'), await head.text()]).toEqual([503, 'no-store', ''])
  })

  it('ADX-6 health routes are no calls, wherever they are mounted', async () => {
    const { admission, app } = serve({ config: full })
    const sub = new Hono().route('/deep', admission.health())
    sub.onError((_, c) => c.text('', 500))
    app.route('/', admission.health()).route('/:any', sub)
    app.basePath('/base').route('/', admission.health())
    app.get('/call', (c) => c.text('ok'))
    for (const path of ['/livez', '/readyz', '/x/deep/livez', '/base/readyz']) {
      expect((await app.request(path)).status).toBe(200)
    }
    expect(admission.core.snapshot().totals.refused.concurrency).toBe(0)
    expect((await app.request('/call')).status).toBe(503)
    expect((await app.request('/livez', { method: 'POST' })).status).toBe(503)
  })

  it('ADX-6 the routes of one admission are no calls of another', async () => {
    const { app } = serve({ config: full })
    app.route('/', serve().admission.health())
    expect((await app.request('/livez')).status).toBe(200)
  })
})
