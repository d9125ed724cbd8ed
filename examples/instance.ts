/**
 * One of several instances behind a gateway or a balancer: it announces itself, and loses no request when it goes.
 * `npm run build:examples`, then `node build/examples/instance.js`; `examples/deploy` has what runs it.
 *
 * From the environment: PORT (3000), HOST (127.0.0.1), INSTANCE_ID (a name made up at the start), INSTANCE_URL (where
 * gateways reach it), ANNOUNCE_MS, FINISH_MS, CLOSE_MS (3000, 5000, 1000). With GATEWAY_URL (several: separated by
 * commas) and GATEWAY_TOKEN it registers with `examples/gateway.ts`; without, it just serves. With ADMIN_TOKEN it has
 * the operator's side at /admission.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAdmission } from '@sluice/admission'
import { announceInstance } from '@sluice/admission/gateway'
import { serveWithAdmission } from '@sluice/admission/node'
import { Hono } from 'hono'

const { env } = process
const port = Number(env.PORT ?? 3000)
const hostname = env.HOST ?? '127.0.0.1'
const id = env.INSTANCE_ID ?? `instance-${randomUUID().slice(0, 8)}`

const announcer =
  env.GATEWAY_URL === undefined || env.GATEWAY_TOKEN === undefined
    ? undefined
    : announceInstance({
        gateways: env.GATEWAY_URL.split(','),
        token: env.GATEWAY_TOKEN,
        id,
        url: env.INSTANCE_URL ?? `http://${hostname}:${port}`,
        generation: Date.now(), // of this start: a late word about the last one cannot drain it
        onFailure: ({ gateway, event, error }) => console.error(`${gateway} was not told ${event}: ${error}`),
      })

const admission = createAdmission({
  config: { global: { concurrency: 100 }, queue: { maxQueuedCalls: 200, maxQueueDelayMs: 2000 } },
  onPublish({ who, from, to }) {
    console.log(JSON.stringify({ who, from, to }))
  },
})

const app = new Hono()
if (env.ADMIN_TOKEN !== undefined) app.route('/admission', admission.admin({ tokens: { write: [env.ADMIN_TOKEN] } }))
app.route('/', admission.health())
app.use(admission.middleware())
app.get('/', (c) => c.json({ id }))
app.post('/orders', async (c) => {
  await sleep(20 + Math.random() * 60)
  return c.json({ id, order: randomUUID() }, 201)
})

const handle = await serveWithAdmission(app, admission, {
  port,
  hostname,
  announcer,
  announceMs: Number(env.ANNOUNCE_MS ?? 3000),
  finishMs: Number(env.FINISH_MS ?? 5000),
  closeMs: Number(env.CLOSE_MS ?? 1000),
  onPhase: (phase) => console.log(`${id}: ${phase}`),
  onReport: (report) => console.log(JSON.stringify(report)),
  // Longer than what stands in front keeps an idle connection, so that it is never this end that closes one in use.
  server: { serverOptions: { keepAliveTimeout: 65_000 } },
})
console.log(`${id}: http://${handle.hostname}:${handle.port}`)
