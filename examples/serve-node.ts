/**
 * A whole server on Node: limits, a queue, the operator's side, health checks, and an end that loses no request.
 * `node build/examples/serve-node.js`, after `npm run build:examples`; PORT (3000) and ADMIN_TOKEN come from the environment.
 */

import { getConnInfo } from '@hono/node-server/conninfo'
import { clientAddress, createAdmission } from '@sluice/admission'
import { serveWithAdmission } from '@sluice/admission/node'
import { Hono } from 'hono'

const admission = createAdmission({
  config: {
    global: { concurrency: 100 },
    queue: { maxQueuedCalls: 200, maxQueueDelayMs: 2000 },
    contracts: {
      // Whoever has four downloads open gets no fifth, and one that is not read for half a minute ends.
      '/files': { delivery: { key: 'client', maxOpenBodies: 4, stallTimeoutMs: 30_000 } },
    },
  },
  selectors: { client: clientAddress({ getConnInfo }) },
})

const files = new Hono()
files.get('/:megabytes', (c) => {
  let left = 16 * Number(c.req.param('megabytes'))
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => (left-- > 0 ? controller.enqueue(new Uint8Array(65_536)) : controller.close()),
  })
  return c.body(body)
})

const app = new Hono()
app.route('/admission', admission.admin({ tokens: { write: [process.env.ADMIN_TOKEN ?? ''] } }))
app.route('/', admission.health())
app.use(admission.middleware())
app.route('/files', files)
app.get('/', (c) => c.text('Hello'))

const { port } = await serveWithAdmission(app, admission, {
  hostname: '127.0.0.1',
  port: Number(process.env.PORT ?? 3000),
  onReport: (report) => console.log(JSON.stringify(report)),
  // Longer than the idle timeout of whatever balancer stands in front, so that it is the balancer that closes.
  server: { serverOptions: { keepAliveTimeout: 65_000 } },
})
console.log(`Listening on http://127.0.0.1:${port}`)
