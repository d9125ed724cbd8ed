import { type Context, Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import { type AdmissionOptions, createAdmission } from '../../src/hono/create-admission.ts'
import type { AdmissionVariables } from '../../src/hono/middleware.ts'
import { ManualClock } from '../../src/manual-clock.ts'

type Handler = (c: Context<{ Variables: AdmissionVariables & { user: string } }>) => Response | Promise<Response>

function serve(handler: Handler, options: AdmissionOptions = {}) {
  const clock = new ManualClock()
  const errors: unknown[] = []
  const admission = createAdmission({
    clock,
    acknowledgeOneWay: true,
    config: { global: { concurrency: 1 }, queue: { maxQueuedCalls: 5, queueOneWayCalls: true } },
    onBackgroundError: (error) => {
      errors.push(error)
    },
    ...options,
  })
  const app = new Hono<{ Variables: AdmissionVariables & { user: string } }>()
  app.use(async (c, next) => {
    c.set('user', 'ann')
    await next()
    c.header('x-outer', 'seen')
  })
  app.use(admission.middleware())
  app.all('/jobs/:id', handler)
  const send = (body?: BodyInit, headers: Record<string, string> = { prefer: 'respond-async' }) =>
    app.request('/jobs/7', body === undefined ? { method: 'POST', headers } : { method: 'POST', headers, body })
  return { app, admission, clock, errors, send }
}

/** A promise that the test opens. */
function gate() {
  let open: () => void = () => undefined
  const passed = new Promise<void>((resolve) => {
    open = resolve
  })
  return { passed, open: () => open() }
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve()
}

describe('acknowledged one-way requests', () => {
  it('WEB-2 an admitted one-way request is answered 202 while its handler still runs, with body, params and variables', async () => {
    const { passed, open } = gate()
    const seen: unknown[] = []
    const { admission, send, errors } = serve(async (c) => {
      await passed
      seen.push(c.req.param('id'), await c.req.text(), c.var.user, c.var.admission?.scopes, c.req.header('x-trace'))
      return c.text('nobody reads this', 201)
    })
    const response = await send('payload', { prefer: 'respond-async', 'x-trace': 't1' })
    expect([response.status, response.headers.get('preference-applied'), response.body]).toEqual([
      202,
      'respond-async',
      null,
    ])
    expect(response.headers.get('x-outer')).toBe('seen')
    expect(admission.core.snapshot().active).toBe(1)
    open()
    await admission.core.whenIdle()
    expect(seen).toEqual(['7', 'payload', 'ann', ['global'], 't1'])
    expect(errors).toEqual([])
  })

  it('WEB-2 a queued one-way request is answered 202 at once and runs when there is room', async () => {
    const { passed, open } = gate()
    let runs = 0
    const { admission, send } = serve(async (c) => {
      runs += 1
      await passed
      return c.body(null)
    })
    await send()
    const second = await send('x')
    expect(second.status).toBe(202)
    await settled()
    expect([runs, admission.core.snapshot().queued.calls]).toEqual([1, 1])
    open()
    await admission.core.whenIdle()
    expect(runs).toBe(2)
  })

  it('QUE-4 a one-way request that finds no room is refused at once while queueOneWayCalls is false', async () => {
    const { passed, open } = gate()
    const { admission, send } = serve(
      async (c) => {
        await passed
        return c.body(null)
      },
      { config: { global: { concurrency: 1 }, queue: { maxQueuedCalls: 5 } } },
    )
    await send()
    const second = await send()
    expect([second.status, (await second.json()).reason]).toEqual([503, 'one_way'])
    open()
    await admission.core.whenIdle()
  })

  it('WEB-2 a body over the bound gets 413, runs nothing and holds nothing, admitted or queued', async () => {
    const { passed, open } = gate()
    let runs = 0
    const { admission, send } = serve(
      async (c) => {
        runs += 1
        await passed
        return c.body(null)
      },
      { maxAcknowledgedBodyBytes: 3 },
    )
    expect((await send('four')).status).toBe(413)
    expect(admission.core.snapshot().active).toBe(0)
    expect((await send('abc')).status).toBe(202)
    expect((await send('four')).status).toBe(413)
    expect(admission.core.snapshot().queued).toMatchObject({ calls: 0, bytes: 0 })
    open()
    await admission.core.whenIdle()
    expect(runs).toBe(1)
  })

  it.each([
    ['an Error', new Error('boom')],
    ['something that is none', 'boom'],
  ])('WEB-2 a handler that throws %s is reported to the hook and releases its permit', async (_what, thrown) => {
    const { admission, send, errors } = serve(() => {
      throw thrown
    })
    expect((await send()).status).toBe(202)
    await admission.core.whenIdle()
    await settled()
    expect(errors).toEqual([thrown])
  })

  it('WEB-2 a failure that a sub-app answers itself is reported, too', async () => {
    const { app, admission, errors } = serve((c) => c.body(null))
    const sub = new Hono()
    sub.onError((_error, c) => c.text('handled', 500))
    sub.post('/x', () => {
      throw new Error('inner')
    })
    app.route('/sub', sub)
    await app.request('/sub/x', { method: 'POST', headers: { prefer: 'respond-async' } })
    await admission.core.whenIdle()
    await settled()
    expect(errors).toMatchObject([{ message: 'inner' }])
  })

  it('WEB-2 a request that times out in the queue after its 202 is reported to the hook', async () => {
    const { passed, open } = gate()
    const { admission, send, errors, clock } = serve(async (c) => {
      await passed
      return c.body(null)
    })
    await send()
    expect((await send()).status).toBe(202)
    clock.advance(1000)
    await settled()
    expect(errors).toMatchObject([
      { code: 'ADMISSION_ACKNOWLEDGED_REFUSAL', refusal: { reason: 'queue_timeout', scope: 'global' } },
    ])
    open()
    await admission.core.whenIdle()
  })

  it('WEB-2 the response of the handler is cancelled', async () => {
    let cancelled = false
    const { admission, send } = serve(
      () =>
        new Response(
          new ReadableStream({
            cancel: () => {
              cancelled = true
            },
          }),
        ),
    )
    await send()
    await admission.core.whenIdle()
    expect(cancelled).toBe(true)
  })

  it('WEB-2 isOneWay counts as much as the header; other requests are answered by their handlers', async () => {
    const { admission, send } = serve((c) => c.text('done'), { isOneWay: (c) => c.req.header('x-fire') === '1' })
    expect((await send('', { 'x-fire': '1' })).status).toBe(202)
    await admission.core.whenIdle()
    expect((await send('', {})).status).toBe(200)
  })

  it('ADM-8 a second mount further in does not take a second permit in the background', async () => {
    const admission = createAdmission({ acknowledgeOneWay: true, config: { global: { concurrency: 1 } } })
    let ran = false
    const app = new Hono()
    app.use(admission.middleware())
    app.use(admission.middleware())
    app.post('/', (c) => {
      ran = true
      return c.body(null)
    })
    await app.request('/', { method: 'POST', headers: { prefer: 'respond-async' } })
    await admission.core.whenIdle()
    expect(ran).toBe(true)
  })
})
