import { type Context, Hono } from 'hono'
import type { Limits } from './limits.ts'
import type { Probe } from './probe.ts'
import { sleep, ticks } from './sources.ts'

/** Routes that take time, and count who is in them against the limit in force. */
export function work(probe: Probe, limits: Limits): Hono {
  const app = new Hono()
  const counted = async <T>(act: () => Promise<T>): Promise<T> => {
    const { counts } = probe
    counts.running += 1
    counts.started += 1
    counts.mostRunning = Math.max(counts.mostRunning, counts.running)
    if (counts.running > limits.ofStart()) counts.violations += 1
    try {
      return await act()
    } finally {
      probe.counts.running -= 1
      probe.counts.finished += 1
    }
  }
  const number = (c: Context, name: string): number => Number(c.req.query(name))

  app.all('/sleep', (c) =>
    counted(async () => {
      await sleep(number(c, 'ms'))
      return c.text('slept')
    }),
  )
  app.all('/signal', (c) =>
    counted(async () => {
      c.req.raw.signal.addEventListener('abort', () => {
        probe.counts.aborts += 1
      })
      await sleep(number(c, 'ms'))
      return c.text('slept')
    }),
  )
  app.post('/read', (c) =>
    counted(async () => {
      const bytes = (await c.req.arrayBuffer()).byteLength
      await sleep(number(c, 'ms'))
      return c.text(`${bytes}`)
    }),
  )
  app.get('/ticks', (c) => counted(async () => c.body(ticks(probe, number(c, 'count'), number(c, 'every')))))
  return app
}
