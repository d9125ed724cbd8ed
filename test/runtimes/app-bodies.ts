import type { Hono } from 'hono'
import { streamSSE } from 'hono/streaming'
import type { RequestEnv } from './limits.ts'
import type { Probe } from './probe.ts'
import { source } from './sources.ts'

/** One route for each kind of body that a handler can answer with. */
export function addBodies(app: Hono<RequestEnv>, probe: Probe): Hono<RequestEnv> {
  const four = { count: 4, bytes: 256 }
  app.get('/text', (c) => c.text('Hello'))
  app.get('/json', async (c) => c.json({ hello: 'world' }))
  app.get('/empty', (c) => c.body(null, 204))
  app.get('/throw', () => {
    throw new Error('thrown')
  })
  app.get('/chunked', (c) => c.body(source(probe, four), 200, { 'Content-Type': 'text/plain' }))
  app.get('/length', (c) => c.body(source(probe, four), 200, { 'Content-Length': '1024' }))
  app.get('/late', (c) => c.body(source(probe, { ...four, endAfterMs: 2 }), 200, { 'Content-Length': '1024' }))
  app.get('/broken', (c) => c.body(source(probe, { ...four, breaksAt: 2 })))
  app.get('/sse', (c) =>
    streamSSE(c, async (stream) => {
      for (let id = 0; id < 3; id += 1) await stream.writeSSE({ id: `${id}`, data: 'tick' })
    }),
  )
  app.get('/big', (c) => c.body(source(probe, { count: 16 * Number(c.req.query('megabytes')), bytes: 65_536 })))
  return app
}
