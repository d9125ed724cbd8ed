import { Hono } from 'hono'
import { compress } from 'hono/compress'
import { etag } from 'hono/etag'
import { describe, expect, it } from 'vitest'
import type { ContractInput } from '../../src/config/types.ts'
import { createAdmission } from '../../src/hono/create-admission.ts'
import { ManualClock } from '../../src/manual-clock.ts'

const chunk = (text: string): Uint8Array => new TextEncoder().encode(text)

/** A source that the test feeds by hand. */
function source() {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  let cancelled: unknown
  const stream = new ReadableStream<Uint8Array>({
    start: (given) => {
      controller = given
    },
    cancel: (reason) => {
      cancelled = reason ?? 'no reason'
    },
  })
  if (controller === undefined) throw new Error('no controller')
  return { stream, controller, cancelled: () => cancelled }
}

function serve(settings: ContractInput, respond: () => Response, clock = new ManualClock()) {
  const admission = createAdmission({
    clock,
    config: { contracts: { '/': { concurrency: 1, ...settings } } },
    selectors: { client: (c) => c.req.header('x-client') },
  })
  const app = new Hono()
  app.use(admission.middleware())
  app.get('/', () => respond())
  const state = () => {
    const { active, deliveries } = admission.core.snapshot()
    return { active, open: deliveries[0]?.openBodies ?? 0, timers: clock.pending }
  }
  return { app, admission, clock, state, get: (headers = {}) => app.request('/', { headers }) }
}

const quiet = { active: 0, open: 0, timers: 0 }
const hold: ContractInput = { holdUntil: 'body' }
const bound: ContractInput = { delivery: { key: 'client', maxOpenBodies: 1, stallTimeoutMs: 500 } }
const asA = { 'x-client': 'a' }

describe('holdUntil "body"', () => {
  it('REL-2 the permit is free before the chunk that completes the declared length can be seen', async () => {
    const { stream, controller } = source()
    const { state, get } = serve(hold, () => new Response(stream, { headers: { 'content-length': '4' } }))
    const reader = (await get()).body?.getReader()
    controller.enqueue(chunk('ab'))
    await reader?.read()
    expect(state().active).toBe(1)
    controller.enqueue(chunk('cd'))
    await reader?.read()
    expect(state()).toEqual(quiet) // the source has not said that it is done
    controller.close()
    expect((await reader?.read())?.done).toBe(true)
    expect(state()).toEqual(quiet)
  })

  it('REL-2 without a length the permit is free when the source is done, before the stream is closed', async () => {
    const { stream, controller } = source()
    const { state, get } = serve(hold, () => new Response(stream))
    const reader = (await get()).body?.getReader()
    controller.enqueue(chunk('ab'))
    await reader?.read()
    expect(state().active).toBe(1)
    controller.close()
    expect((await reader?.read())?.done).toBe(true)
    expect(state()).toEqual(quiet)
  })

  it('REL-2 a source that errors releases once and passes its error on', async () => {
    const { stream, controller } = source()
    const { state, get } = serve(hold, () => new Response(stream))
    const response = await get()
    controller.error(new Error('disk gone'))
    await expect(response.text()).rejects.toThrow('disk gone')
    expect(state()).toEqual(quiet)
  })

  it('REL-2 a reader that cancels releases once and cancels the source', async () => {
    const { stream, cancelled } = source()
    const { state, get } = serve(hold, () => new Response(stream))
    await (await get()).body?.cancel('gone')
    expect(state()).toEqual(quiet)
    expect(cancelled()).toBe('gone')
  })

  it('REL-6 a body that is never read is ended after 30 s without delivery', async () => {
    const { stream, cancelled } = source()
    const { state, get, clock } = serve(hold, () => new Response(stream))
    const response = await get()
    clock.advance(29_999)
    expect(state().active).toBe(1)
    clock.advance(1)
    expect(state()).toEqual(quiet)
    expect(cancelled()).toMatchObject({ code: 'ADMISSION_BODY_STALLED', stallTimeoutMs: 30_000 })
    await expect(response.text()).rejects.toThrow('30000 ms')
  })

  it('REL-3 the stall clock stands still while the reader waits for its source', async () => {
    const { stream, controller } = source()
    const { state, get, clock } = serve({ ...hold, ...bound }, () => new Response(stream))
    const reader = (await get(asA)).body?.getReader()
    const read = reader?.read()
    await Promise.resolve()
    clock.advance(10_000)
    expect(state()).toMatchObject({ active: 1, open: 1 })
    controller.enqueue(chunk('late'))
    expect(new TextDecoder().decode((await read)?.value)).toBe('late')
    clock.advance(499)
    expect(state()).toMatchObject({ active: 1, open: 1 })
    clock.advance(1)
    expect(state()).toEqual(quiet)
  })

  it('REL-4 HEAD is not wrapped: its source is cancelled and nothing stays taken', async () => {
    const { stream, cancelled } = source()
    const { app, state } = serve({ ...hold, ...bound }, () => new Response(stream))
    const response = await app.request('/', { method: 'HEAD', headers: asA })
    expect(response.body).toBeNull()
    expect(state()).toEqual(quiet)
    expect(cancelled()).toBe('no reason')
  })

  it('REL-4 null bodies leave the response as it is', async () => {
    const { state, get } = serve({ ...hold, ...bound }, () => new Response(null, { status: 204 }))
    expect((await get(asA)).status).toBe(204)
    expect(state()).toEqual(quiet)
  })

  it('WEB-6 status and headers stay as the handler made them', async () => {
    const { get } = serve(hold, () => {
      const headers = new Headers({ 'content-type': 'text/csv', 'x-mine': '1' })
      headers.append('set-cookie', 'a=1')
      headers.append('set-cookie', 'b=2')
      return new Response('a,b', { status: 206, statusText: 'Some', headers })
    })
    const response = await get()
    expect([response.status, response.statusText, await response.text()]).toEqual([206, 'Some', 'a,b'])
    expect([...response.headers]).toEqual([
      ['content-type', 'text/csv'],
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
      ['x-mine', '1'],
    ])
  })

  it('REL-2 a body that an outer middleware drops is given back at a bounded time', async () => {
    const clock = new ManualClock()
    const admission = createAdmission({ clock, config: { contracts: { '/': { concurrency: 1, ...hold } } } })
    const app = new Hono()
    app.use(etag(), compress())
    app.use(admission.middleware())
    app.get('/', (c) => c.text('same'))
    const first = await app.request('/')
    await first.text()
    const tag = first.headers.get('etag') ?? ''
    const second = await app.request('/', { headers: { 'if-none-match': tag } })
    expect(second.status).toBe(304)
    clock.advance(30_000)
    expect(admission.core.snapshot().active).toBe(0)
    expect(clock.pending).toBe(0)
  })
})

describe('delivery', () => {
  it('REL-3 permits are free after the handler while the key keeps its place; another key is untouched', async () => {
    const { state, get } = serve(bound, () => new Response(source().stream))
    const response = await get(asA)
    expect(state()).toMatchObject({ active: 0, open: 1 })
    const refused = await get(asA)
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({ reason: 'delivery', scope: 'contract:/' })
    const other = await get({ 'x-client': 'b' })
    expect(other.status).toBe(200)
    await response.body?.cancel()
    await other.body?.cancel()
    expect(state()).toEqual(quiet)
  })

  it('REL-6 any body counts, also a short text', async () => {
    const { state, get } = serve(bound, () => new Response('short'))
    const response = await get(asA)
    expect(state().open).toBe(1)
    await response.text()
    expect(state()).toEqual(quiet)
  })
})
