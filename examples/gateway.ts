/**
 * A gateway in front of instances that register with it. `npm run gateway`, then try what it prints; or this
 * file with Bun or `deno run -A`.
 *
 * The registry is at /gateway; everything else is proxied. PORT (8080; 0 takes a free one), HOST (127.0.0.1),
 * GATEWAY_TOKEN (one is made up) and ALGORITHM (least-active) come from the environment.
 */
import { randomUUID } from 'node:crypto'
import { serve } from '@hono/node-server'
import { getConnInfo } from '@hono/node-server/conninfo'
import { type Algorithm, createGateway } from '@sluice/admission/gateway'
import { Hono } from 'hono'

const ALGORITHMS: readonly Algorithm[] = ['weighted-round-robin', 'least-active', 'power-of-two', 'consistent-hash']

const port = Number(process.env.PORT ?? 8080)
const host = process.env.HOST ?? '127.0.0.1'
const token = process.env.GATEWAY_TOKEN ?? randomUUID()
const algorithm = ALGORITHMS.find((known) => known === process.env.ALGORITHM) ?? 'least-active'

// An instance gets requests once a probe has found it ready: one that replaces another on its port may not listen yet.
const gateway = createGateway({ algorithm, probes: { path: '/readyz', intervalMs: 2000 }, selectUnknown: false })
const app = new Hono()
app.route('/gateway', gateway.registry({ tokens: [token] }))
app.all(
  '*',
  gateway.proxy({
    getConnInfo,
    key: (c) => c.req.header('x-tenant'),
    onFailure: ({ upstream, failure, isRetried }) => console.error(`${upstream}: ${failure}, retried: ${isRetried}`),
  }),
)
gateway.start()

const server = serve({ fetch: app.fetch, port, hostname: host }, (address) => console.log(welcome(address.port)))

function leave(): void {
  for (const again of ['SIGINT', 'SIGTERM'] as const) process.once(again, () => process.exit(1))
  gateway.stop()
  server.close(() => process.exit(0))
  // A socket that was busy when the server closed goes idle later, and would keep the process alive.
  if ('closeIdleConnections' in server) setInterval(() => server.closeIdleConnections(), 100)
}
process.once('SIGINT', leave)
process.once('SIGTERM', leave)

function welcome(port: number): string {
  const base = `http://${host}:${port}`
  const instance = (id: string, port: number): string =>
    `GATEWAY_URL=${base}/gateway GATEWAY_TOKEN=${token} ADMIN_TOKEN=try \\
    PORT=${port} INSTANCE_ID=${id} node build/examples/instance.js`
  return `Listening on ${base}

Two instances that announce themselves, each in a terminal of its own:
  ${instance('orders-1', 3001)}
  ${instance('orders-2', 3002)}

Through the gateway, to either of them:
  curl -i ${base}/
  curl -i -X POST ${base}/orders

Drain one, see that the gateway knows, and let it come back:
  export GATEWAY='Authorization: Bearer ${token}'
  curl -s -X POST -H 'Authorization: Bearer try' http://127.0.0.1:3001/admission/drain
  curl -s -H "$GATEWAY" ${base}/gateway/upstreams
  curl -s -X POST -H 'Authorization: Bearer try' http://127.0.0.1:3001/admission/resume

Ctrl-C in its terminal ends an instance without losing a request; it takes 3 s. One that does not announce itself:
  curl -s -H "$GATEWAY" -H 'Content-Type: application/json' ${base}/gateway/events \\
    --data '{ "events": [{ "type": "register", "id": "orders-3", "url": "http://127.0.0.1:3003" }] }'
`
}
