import { Hono } from 'hono'
import { streamSSE } from 'hono/streaming'
import type { Probe } from './probe.ts'
import { chunks } from './sources.ts'

/** One route for each kind of body that a handler can answer with. */
export function bodies(probe: Probe): Hono {
  const app = new Hono()
  app.get('/text', (c) => c.text('Hello'))
  app.get('/json', async (c) => c.json({ hello: 'world' }))
  app.get('/empty', (c) => c.body(null, 204))
  app.get('/throw', () => {
    throw new Error('thrown')
  })
  app.get('/chunked', (c) => c.body(chunks(probe, 4, 256)))
  app.get('/length', (c) => c.body(chunks(probe, 4, 256), 200, { 'Content-Length': '1024' }))
  app.get('/sse', (c) =>
    streamSSE(c, async (stream) => {
      for (let id = 0; id < 3; id += 1) await stream.writeSSE({ id: `${id}`, data: 'tick' })
    }),
  )
  return app
}
