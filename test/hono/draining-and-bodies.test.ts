import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import type { PublishEvent } from '../../src/control/reporter.ts'
import { createAdmission } from '../../src/hono/create-admission.ts'
import { ManualClock } from '../../src/manual-clock.ts'

const bearer = { authorization: 'Bearer t' }

describe('draining over time', () => {
  it('DRN-1 RUN-3 an announcement is over when a call comes after it, even if its timer was lost', async () => {
    const clock = new ManualClock()
    const admission = createAdmission({ clock, config: { global: { concurrency: 5 } } })
    const app = new Hono()
    app.use(admission.middleware())
    app.get('/', (c) => c.text('ok'))
    admission.core.drain({ announceMs: 300 })
    clock.set(299)
    expect((await app.request('/')).status).toBe(200)
    clock.set(300) // no timer rings
    expect((await app.request('/')).status).toBe(503)
    expect(admission.core.snapshot()).toMatchObject({ draining: true, announcing: false })
  })

  it('DRN-2 so it is while disabled', async () => {
    const clock = new ManualClock()
    const admission = createAdmission({ clock })
    const app = new Hono()
    app.use(admission.middleware())
    app.get('/', (c) => c.text('ok'))
    admission.core.drain({ announceMs: 300 })
    expect((await app.request('/')).status).toBe(200)
    clock.set(300)
    expect((await app.request('/')).status).toBe(503)
    expect(admission.core.snapshot().totals).toMatchObject({ admitted: 1, refused: { draining: 1 } })
  })

  it('ADX-5 the end of an announcement is reported, by time and by a second drain, with whoever began it', () => {
    const clock = new ManualClock()
    const events: PublishEvent[] = []
    const admission = createAdmission({ clock, onPublish: (event) => void events.push(event) })
    admission.core.drain({ announceMs: 300, who: 'ann' })
    clock.advance(300)
    admission.core.resume({ who: 'bob' })
    admission.core.drain({ announceMs: 300, who: 'ann' })
    admission.core.drain({ who: 'bob' })
    expect(events.map(({ who, to }) => [who, to.draining, to.announcing])).toEqual([
      ['ann', true, true],
      ['ann', true, false],
      ['bob', false, false],
      ['ann', true, true],
      ['bob', true, false],
    ])
    expect(clock.pending).toBe(0)
  })

  it('ADM-10 draining comes before an identify that throws', async () => {
    const admission = createAdmission({
      config: {},
      identify: () => {
        throw new Error('no identity')
      },
    })
    const app = new Hono()
    app.use(admission.middleware())
    app.get('/', (c) => c.text('ok'))
    admission.core.drain()
    expect((await app.request('/')).status).toBe(503)
  })
})

describe('bodies', () => {
  it.each([undefined, 'text', 7])(
    'ADM-7 a source that gives %s instead of bytes costs no permit for good',
    async (chunk) => {
      const clock = new ManualClock()
      const admission = createAdmission({
        clock,
        config: { contracts: { '/': { concurrency: 1, holdUntil: 'body' } } },
      })
      const app = new Hono()
      app.use(admission.middleware())
      app.get('/', () => {
        const source = new ReadableStream({
          start: (controller) => {
            controller.enqueue(chunk)
            controller.close()
          },
        })
        return new Response(source, { headers: { 'content-length': '9' } })
      })
      const response = await app.request('/')
      await response.text().catch(() => undefined)
      clock.advance(30_000)
      expect(admission.core.snapshot().active).toBe(0)
      expect(clock.pending).toBe(0)
    },
  )

  it('WEB-2 delivery does not apply to an acknowledged request', async () => {
    let open: () => void = () => undefined
    const passed = new Promise<void>((resolve) => {
      open = resolve
    })
    const admission = createAdmission({
      acknowledgeOneWay: true,
      config: { contracts: { '/': { delivery: { key: 'client', maxOpenBodies: 1 } } } },
      selectors: { client: () => 'a' },
    })
    const app = new Hono()
    app.use(admission.middleware())
    app.post('/', async (c) => {
      await passed
      return c.body(null)
    })
    app.get('/', (c) => c.text('read me'))
    expect((await app.request('/', { method: 'POST', headers: { prefer: 'respond-async' } })).status).toBe(202)
    const response = await app.request('/')
    expect(response.status).toBe(200)
    await response.text()
    open()
    await admission.core.whenIdle()
    expect(admission.core.snapshot().deliveries[0]).toMatchObject({ keys: 0, openBodies: 0 })
  })

  it('WEB-2 a body that an earlier middleware has read reaches the acknowledged handler', async () => {
    const admission = createAdmission({ acknowledgeOneWay: true, config: {} })
    const app = new Hono()
    const seen: unknown[] = []
    app.use(async (c, next) => {
      seen.push(await c.req.json())
      await next()
    })
    app.use(admission.middleware())
    app.post('/', async (c) => {
      seen.push(await c.req.json())
      return c.body(null)
    })
    const headers = { prefer: 'respond-async', 'content-type': 'application/json' }
    expect((await app.request('/', { method: 'POST', headers, body: '{"a":1}' })).status).toBe(202)
    await admission.core.whenIdle()
    expect(seen).toEqual([{ a: 1 }, { a: 1 }])
  })
})

describe('metrics', () => {
  it('API-4 a scope has one series for its rate, its keys and its bodies, also after disable and enable', async () => {
    const rate = (permitLimit: number) => ({ algorithm: 'fixed-window', permitLimit, windowMs: 60_000 }) as const
    const config = (limit: number, key: string) => ({
      global: { rate: rate(limit), partitions: { tenant: { rate: rate(limit) } } },
      contracts: { '/': { delivery: { key, maxOpenBodies: 5 } } },
    })
    const selectors = { tenant: () => 'a', client: () => 'b' }
    const admission = createAdmission({ config: config(10, 'tenant'), selectors })
    const app = new Hono()
    app.route('/admission', admission.admin({ tokens: { read: ['t'] } }))
    app.use(admission.middleware())
    app.get('/', (c) => c.text('ok'))
    const open = await app.request('/')
    admission.core.disable()
    admission.core.enable(config(20, 'client'))
    await app.request('/')
    const text = await (await app.request('/admission/metrics', { headers: bearer })).text()
    const series = text.split('\n').flatMap((line) => (line === '' || line.startsWith('#') ? [] : [line.split(' ')[0]]))
    expect(series.filter((name, index) => series.indexOf(name) !== index)).toEqual([])
    expect(text).toContain('sluice_rate_remaining{scope="global"} 19')
    await open.body?.cancel()
  })
})
