/**
 * A gateway in front of instances that register with it. `npm run build:examples`, then
 * `PORT=8080 GATEWAY_TOKEN=… node build/examples/gateway.js`, or the same with Bun or `deno run -A` on this file.
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

const gateway = createGateway({ algorithm, probes: { path: '/readyz', intervalMs: 2000 } })
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
  return `Listening on ${base}

  export GATEWAY='Authorization: Bearer ${token}'
  curl -s -H "$GATEWAY" ${base}/gateway/upstreams
  curl -s -H "$GATEWAY" -H 'Content-Type: application/json' ${base}/gateway/events \\
    --data '{ "events": [{ "type": "register", "id": "orders-1", "url": "http://127.0.0.1:3000" }] }'
  curl -i ${base}/
`
}
