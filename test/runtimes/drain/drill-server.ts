import { Hono } from 'hono'
import { streamText } from 'hono/streaming'
import { createAdmission } from '../../../mod.ts'
import type { AdmissionHolder, FetchApp, ServeHandle, ServeOptions } from '../../../src/host/serve.ts'

type Serve = (app: FetchApp, admission: AdmissionHolder, options: ServeOptions) => Promise<ServeHandle<unknown>>

/** What the tests may want of a server; comes as JSON in the environment. */
export interface DrillOptions {
  readonly announceMs: number
  readonly finishMs: number
  readonly closeMs: number
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Serves the routes of the drills, and writes what happens to it as lines of `name value`. */
export async function runDrillServer(serveWithAdmission: Serve): Promise<void> {
  const options: DrillOptions = JSON.parse(process.env.DRILL ?? '{}')
  const admission = createAdmission({
    config: {
      queue: { maxQueuedCalls: 100, maxQueueDelayMs: 10_000 },
      contracts: { '/': { methods: { 'GET /one': { concurrency: 1 } } } },
    },
  })
  const app = new Hono()
  app.route('/', admission.health())
  app.post('/shutdown', (c) => {
    void handle.shutdown()
    return c.text('leaving')
  })
  app.use(admission.middleware())
  const slow = async (ms: string | undefined): Promise<string> => {
    await sleep(Number(ms ?? 0))
    return `done after ${ms}`
  }
  app.get('/quick', (c) => c.text('quick'))
  app.get('/slow', async (c) => c.text(await slow(c.req.query('ms'))))
  app.get('/one', async (c) => c.text(await slow(c.req.query('ms'))))
  app.get('/hang', () => new Promise<Response>(() => undefined))
  app.get('/large', (c) => c.body('x'.repeat(Number(c.req.query('bytes')))))
  app.get('/stream', (c) =>
    streamText(c, async (stream) => {
      for (let chunk = 0; chunk < Number(c.req.query('chunks')); chunk += 1) {
        await stream.write('chunk ')
        await stream.sleep(Number(c.req.query('ms')))
      }
    }),
  )
  app.post('/upload', async (c) => c.text(`${(await c.req.arrayBuffer()).byteLength}`))

  const handle = await serveWithAdmission(app, admission, {
    ...options,
    port: 0,
    hostname: '127.0.0.1',
    onPhase: (phase) => console.log(`phase ${phase}`),
    onReport: (report) => console.log(`report ${JSON.stringify(report)}`),
  })
  console.log(`pid ${process.pid}`)
  console.log(`port ${handle.port}`)
}
