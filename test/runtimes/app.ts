import { type Context, Hono } from 'hono'
import type { UpgradeWebSocket } from 'hono/ws'
import { type Admission, type AdmissionVariables, createAdmission } from '../../mod.ts'
import { bodies } from './app-bodies.ts'
import { work } from './app-work.ts'
import { Limits } from './limits.ts'
import { Probe } from './probe.ts'

/** What differs between the hosts of the one application. */
export interface Host {
  readonly name: string
  readonly upgradeWebSocket: UpgradeWebSocket
}

/** For the admin route; the servers listen on loopback for some minutes only. */
export const TOKEN = 'conformance'

/**
 * The application that every runtime serves. Its limits come over the admin route, case by case; what its handlers see
 * is read from `/probe`, which admission does not touch.
 */
export function runtimeApp({ name }: Host): Hono<{ Variables: AdmissionVariables }> {
  const probe = new Probe()
  const limits = new Limits(name)
  const admission: Admission = createAdmission({
    config: {},
    onPublish: () => limits.publish(admission.core.config?.global?.concurrency),
    selectors: { client: (c) => c.req.header('x-client') },
  })
  const app = new Hono<{ Variables: AdmissionVariables }>()
  app.route('/admission', admission.admin({ tokens: { write: [TOKEN] } }))
  app.get('/probe', (c) => c.json({ runtime: name, ...probe.counts }))
  app.post('/probe/reset', (c) => {
    probe.reset()
    return c.body(null, 204)
  })
  app.route('/late', tooLate())

  app.use(admission.middleware())
  app.route('/quick', bodies(probe))
  app.route('/held', bodies(probe))
  app.route('/work', work(probe, limits))
  app.onError((error, c) => {
    probe.counts.errors += 1
    return c.text(error.message, 500)
  })
  return app
}

/** What Sluice does not do: a permit that is free only after the response. The client must be able to see that. */
function tooLate(): Hono {
  const app = new Hono()
  let active = 0
  app.get('/text', async (c: Context) => {
    if (active === 8) return c.body(null, 503)
    active += 1
    setTimeout(() => {
      active -= 1
    }, 0)
    return c.text('Hello')
  })
  return app
}
