import type { Context, Hono } from 'hono'
import type { Limits, RequestEnv } from './limits.ts'
import type { Probe } from './probe.ts'
import { sleep, source } from './sources.ts'

/** Routes that take time, and count who is in them against the limit in force. */
export function addWork(app: Hono<RequestEnv>, probe: Probe, limits: Limits): Hono<RequestEnv> {
  const counted = async <T>(c: Context<RequestEnv>, act: () => Promise<T>): Promise<T> => {
    const { counts } = probe
    counts.running += 1
    counts.started += 1
    counts.mostRunning = Math.max(counts.mostRunning, counts.running)
    const grantedAtMs = c.var.arrivedAtMs + (c.var.admission?.waitedMs ?? 0)
    const limit = limits.since(grantedAtMs)
    if (counts.running > limit) counts.violations += 1
    if (counts.running === limit) counts.atTheLimit += 1
    try {
      return await act()
    } finally {
      counts.running -= 1
      counts.finished += 1
    }
  }
  const number = (c: Context, name: string): number => Number(c.req.query(name) ?? 0)

  app.all('/sleep', (c) =>
    counted(c, async () => {
      await sleep(number(c, 'ms'))
      if (c.req.query('then') === 'stream') return c.body(source(probe, { count: 4, bytes: 16, everyMs: 20 }))
      return c.text('slept')
    }),
  )
  app.all('/signal', (c) =>
    counted(c, async () => {
      const { counts } = probe
      c.req.raw.signal.addEventListener('abort', () => {
        counts.aborts += 1
      })
      await sleep(number(c, 'ms'))
      return c.text('slept')
    }),
  )
  app.post('/read', (c) =>
    counted(c, async () => {
      const bytes = new Uint8Array(await c.req.arrayBuffer())
      await sleep(number(c, 'ms'))
      const seen = `${bytes.length} bytes from ${bytes[0]} to ${bytes.at(-1)}`
      probe.counts.bodies.push(seen)
      return c.text(seen)
    }),
  )
  app.post('/fail', (c) =>
    counted(c, async () => {
      await sleep(20)
      throw new Error('failed in the background')
    }),
  )
  app.get('/ticks', (c) =>
    counted(c, async () =>
      c.body(source(probe, { count: number(c, 'count'), bytes: 16, everyMs: number(c, 'every') })),
    ),
  )
  return app
}
