import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { compress } from 'hono/compress'
import { etag } from 'hono/etag'
import { timeout } from 'hono/timeout'
import type { UpgradeWebSocket } from 'hono/ws'
import { type Admission, createAdmission } from '../../mod.ts'
import { addBodies } from './app-bodies.ts'
import { addWork } from './app-work.ts'
import { Limits, type RequestEnv } from './limits.ts'
import { Probe } from './probe.ts'

/** What differs between the hosts of the one application. */
export interface Host {
  readonly name: string
  readonly upgradeWebSocket: UpgradeWebSocket
}

/** For the admin route; the servers listen on loopback for some minutes only. */
export const TOKEN = 'conformance'
export const MAX_ACKNOWLEDGED_BYTES = 100_000

/** Middlewares that stand before admission, and behind it, each on a path of its own. */
const OTHERS: { readonly [name: string]: () => MiddlewareHandler } = {
  timeout: () => timeout(100),
  compress: () => compress({ threshold: 0 }),
  etag: () => etag(),
  'body-limit': () => bodyLimit({ maxSize: 1000 }),
  drop: () => dropBody,
}

/**
 * The application that every runtime serves. Its limits come over the admin route, case by case; what its handlers see
 * is read from `/probe`, which admission does not touch.
 */
export function runtimeApp({ name, upgradeWebSocket }: Host): Hono<RequestEnv> {
  const probe = new Probe()
  const limits = new Limits()
  const admission: Admission = createAdmission({
    config: {},
    selectors: { client: (c) => c.req.header('x-client') },
    acknowledgeOneWay: true,
    maxAcknowledgedBodyBytes: MAX_ACKNOWLEDGED_BYTES,
    onBackgroundError: (error) => void probe.counts.backgroundErrors.push(`${error}`),
    onPublish: () => limits.publish(admission.core.config?.global?.concurrency),
  })
  const app = new Hono<RequestEnv>()
  const routes = (): Hono<RequestEnv> => addBodies(addWork(new Hono(), probe, limits), probe)

  app.route('/admission', admission.admin({ tokens: { write: [TOKEN] } }))
  app.get('/probe', (c) => c.json({ runtime: name, ...probe.counts }))
  app.post('/probe/reset', (c) => {
    probe.reset()
    return c.body(null, 204)
  })
  app.route('/late', tooLate())
  app.route('/bare', routes())
  app.use(async (c, next) => {
    c.set('arrivedAtMs', Date.now())
    await next()
  })
  for (const [other, make] of Object.entries(OTHERS)) app.use(`/before-${other}/*`, make())

  app.use(admission.middleware())
  for (const path of ['/quick', '/held', '/work']) app.route(path, routes())
  for (const [other, make] of Object.entries(OTHERS)) {
    app.route(`/before-${other}`, routes())
    app.route(`/after-${other}`, addBodies(addWork(new Hono<RequestEnv>().use(make()), probe, limits), probe))
  }
  const echo = upgradeWebSocket(() => ({ onMessage: (event, socket) => socket.send(`${event.data}`) }))
  app.get('/echo', echo)
  // The helper's handler takes `next`, so it looks like middleware and has only the global scope (WEB-1); this one has all.
  app.get('/routed/echo', (c) => echo(c, async () => undefined).then((response) => response ?? c.notFound()))
  app.onError((error, c) => {
    probe.counts.errors += 1
    return 'getResponse' in error ? error.getResponse() : c.text(error.message, 500)
  })
  return app
}

/** Answers with something else, and leaves the body that it got where it is. */
const dropBody: MiddlewareHandler = async (c, next) => {
  await next()
  c.res = undefined
  c.res = new Response('another body')
}

/** What Sluice does not do: a permit that is free only after the response. The client must be able to see that. */
function tooLate(): Hono {
  const app = new Hono()
  let active = 0
  app.get('/text', (c: Context) => {
    if (active === 8) return c.body(null, 503)
    active += 1
    setTimeout(() => {
      active -= 1
    }, 0)
    return c.text('Hello')
  })
  return app
}
