import process from 'node:process'
import { Hono } from 'hono'
import { streamText } from 'hono/streaming'
import { createAdmission } from '../../../mod.ts'
import { announceInstance } from '../../../src/gateway.ts'
import type { AdmissionHolder, FetchApp, ServeHandle, ServeOptions } from '../../../src/host/serve.ts'

type Serve<Server> = (app: FetchApp, admission: AdmissionHolder, options: ServeOptions) => Promise<ServeHandle<Server>>

/** What a drill wants of an instance; comes as JSON in the environment. */
export interface InstanceOptions {
  readonly id: string
  readonly port: number
  /** URLs of registries; none: it announces itself to nobody. */
  readonly gateways: readonly string[]
  readonly token: string
  readonly announceMs: number
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** How long a platform lets a process stop by itself before it is killed, in the drill that goes without draining. */
const PLATFORM_GRACE_MS = 1000

/**
 * One instance of a service as an application would write it. SIGTERM ends it as `serveWithAdmission` does; SIGUSR2 by
 * the platform's stop alone, for the proof that the drills see losses.
 */
export async function runInstance<Server>(
  serve: Serve<Server>,
  stopPlatform: (server: Server) => Promise<void>,
): Promise<void> {
  const { id, port, gateways, token, announceMs }: InstanceOptions = JSON.parse(process.env.DRILL ?? '{}')
  const announcement = announceInstance({
    gateways,
    token,
    id,
    url: `http://127.0.0.1:${port}`,
    generation: Date.now(),
    heartbeatMs: 1000,
    // A gateway on a busy machine is slow, not gone.
    timeoutMs: 10_000,
    patienceMs: 10_000,
    backoff: { firstMs: 100, maxMs: 500 },
    onFailure: ({ event, error }) => console.log(`announcing ${event} failed: ${error}`),
  })
  const admission = createAdmission({
    config: { global: { concurrency: 64 }, queue: { maxQueuedCalls: 500, maxQueueDelayMs: 10_000 } },
  })
  let uploads = 0
  const app = new Hono()
  app.route('/admission', admission.admin({ tokens: { write: [token] } }))
  app.route('/', admission.health())
  app.use(admission.middleware())
  app.get('/quick/:key', (c) => c.text(c.req.param('key')))
  app.get('/slow/:key', async (c) => {
    await sleep(Number(c.req.query('ms')))
    return c.text(c.req.param('key'))
  })
  app.get('/stream/:key', (c) =>
    streamText(c, async (stream) => {
      for (let chunk = 0; chunk < 5; chunk += 1) {
        await stream.write(`${c.req.param('key')} `)
        await stream.sleep(10)
      }
    }),
  )
  app.post('/upload', async (c) => {
    uploads += 1
    return c.text(await c.req.text())
  })

  const handle = await serve(app, admission, {
    port,
    hostname: '127.0.0.1',
    announceMs,
    announcer: {
      start: () => announcement.start(),
      async draining(reason) {
        const sinceMs = performance.now()
        await announcement.draining(reason)
        console.log(`told ${Math.round(performance.now() - sinceMs)}`)
      },
      offline: () => announcement.offline(),
    },
    onPhase: (phase) => console.log(`phase ${phase}`),
    onReport: (report) => {
      console.log(`report ${JSON.stringify(report)}`)
      console.log(`uploads ${uploads}`)
    },
  })
  process.on('SIGUSR2', async () => {
    setTimeout(() => process.exit(1), PLATFORM_GRACE_MS)
    await stopPlatform(handle.server)
    process.exit(0)
  })
  endWithParent()
  console.log(`port ${handle.port}`)
}

/** The pipe to our standard input breaks when whoever started us is gone, however that came about. */
export function endWithParent(): void {
  process.stdin.on('end', () => process.exit(1))
  process.stdin.resume()
}
