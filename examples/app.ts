/**
 * A small orders service behind admission control. `npm start`, then try what it prints.
 *
 * PORT (3000; 0 takes a free one), HOST (127.0.0.1) and ADMIN_TOKEN (one is made up) come from the environment; the
 * first limits come from `examples/limits.json`.
 */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type AdmissionVariables, createAdmission, parseConfig } from '@sluice/admission'
import { serveWithAdmission } from '@sluice/admission/node'
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

try {
  const server = await serveWithAdmission(app, admission, {
    port,
    hostname: host,
    announceMs: 500, // long enough to see, short enough for Ctrl-C; a balancer needs more
    onPhase: (phase) => console.log('server:', phase),
    onReport: (report) => console.log('server:', JSON.stringify(report)),
  })
  console.log(welcome(`${host}:${server.port}`))
} catch (error) {
  if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error
  console.error(`Port ${port} of ${host} is taken. Choose another one: PORT=${port + 1} npm start`)
  process.exitCode = 1
}

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
