/**
 * A small orders service behind admission control. `npm start`, then try what it prints.
 *
 * PORT (3000; 0 takes a free one), HOST (127.0.0.1) and ADMIN_TOKEN (one is made up) come from the environment; the
 * first limits come from `examples/limits.json`.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { serve } from '@hono/node-server'
import { type AdmissionVariables, createAdmission, parseConfig } from '@sluice/admission'
import { Hono } from 'hono'
import { streamText } from 'hono/streaming'

const port = Number(process.env.PORT ?? 3000)
const host = process.env.HOST ?? '127.0.0.1'
const token = process.env.ADMIN_TOKEN ?? randomUUID()

const admission = createAdmission({
  config: parseConfig(JSON.parse(readFileSync('examples/limits.json', 'utf8'))),
  onPublish: ({ from, to }) => console.log('admission:', JSON.stringify({ from, to })),
})

const orders = new Hono<{ Variables: AdmissionVariables }>()
let [lastId, running] = [0, 0]

orders.get('/:id', (c) => c.json({ id: c.req.param('id'), state: 'paid' }))

orders.post('/', async (c) => {
  running += 1
  // What the handler itself sees, so that a client can check the limit without trusting the counts of admission.
  const seen = { running, limit: admission.core.config?.contracts?.['/orders']?.methods?.['POST /orders']?.concurrency }
  try {
    await sleep(60 + Math.random() * 60)
    lastId += 1
    return c.json({ id: lastId, waitedMs: c.var.admission?.waitedMs ?? 0, ...seen }, 201)
  } finally {
    running -= 1
  }
})

const app = new Hono()
app.route('/admission', admission.admin({ tokens: { write: [token] } }))
app.route('/', admission.health())
app.use(admission.middleware())
app.route('/orders', orders)
app.get('/stream', (c) =>
  streamText(c, async (stream) => {
    for (let second = 1; second <= 5 && !stream.aborted; second += 1) {
      await stream.writeln(`${second} of 5`)
      await stream.sleep(1000)
    }
  }),
)

const server = serve({ fetch: app.fetch, port, hostname: host }, ({ port }) => console.log(welcome(`${host}:${port}`)))

server.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EADDRINUSE') throw error
  console.error(`Port ${port} of ${host} is taken. Choose another one: PORT=${port + 1} npm start`)
  process.exit(1)
})

/** Takes nothing new, finishes what runs and waits, then what is still being sent; a second signal does not wait. */
async function leave(signal: NodeJS.Signals): Promise<void> {
  for (const again of ['SIGINT', 'SIGTERM'] as const) process.once(again, () => process.exit(1))
  admission.core.drain()
  const { active, queued } = admission.core.snapshot()
  console.log(`${signal}: finishing ${active} running and ${queued.calls} queued requests`)
  await Promise.race([admission.core.whenIdle(), sleep(5000)])
  const report = await admission.core.stop({ graceMs: 0 })
  console.log(report.drained ? 'Finished everything.' : `Cut off ${report.active} running requests.`)
  server.close()
  if ('closeIdleConnections' in server) {
    const sweep = setInterval(() => server.closeIdleConnections(), 100)
    await Promise.race([once(server, 'close'), sleep(6000)])
    clearInterval(sweep)
  }
  process.exit(report.drained ? 0 : 1)
}
process.once('SIGINT', leave)
process.once('SIGTERM', leave)

function welcome(address: string): string {
  return `Listening on http://${address}

Orders, with the limits of examples/limits.json:
  curl -i http://${address}/orders/7
  curl -i -X POST http://${address}/orders
  curl -N http://${address}/stream
  curl -i http://${address}/readyz

The operator's side:
  export ADMIN='Authorization: Bearer ${token}'
  curl -i -H "$ADMIN" http://${address}/admission/config
  curl -s -H "$ADMIN" http://${address}/admission/state

Let one order at a time through, while it runs (If-Match: * means: whatever is current):
  sed 's/"concurrency": 16/"concurrency": 1/' examples/limits.json |
    curl -si -X PUT -H "$ADMIN" -H 'Content-Type: application/json' -H 'If-Match: *' --data @- http://${address}/admission/config
  for i in 1 2 3 4; do curl -s -X POST http://${address}/orders & done; wait

Ctrl-C drains and ends it. \`npm run demo\` does all of this under load.
`
}
