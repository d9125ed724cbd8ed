/**
 * Admission in a Worker: one count for each isolate. What one isolate may do at once is limited, not what all of them
 * do together; for that see `durable-object.ts`.
 *
 * The whole of a request goes to `waitUntil`, so a reset connection cannot keep a permit; a request that waits has a
 * timer of its own, as the platform demands. Both are done by the middleware.
 */
import { env } from 'cloudflare:workers'
import { type AdmissionVariables, createAdmission } from '@sluice/admission'
import { Hono } from 'hono'

const admission = createAdmission({
  config: {
    global: { concurrency: 2 },
    queue: { maxQueuedCalls: 100, maxQueueDelayMs: 5000 },
  },
})

const app: Hono<{ Variables: AdmissionVariables }> = new Hono()
app.route('/admission', admission.admin({ tokens: { write: [env.ADMIN_TOKEN] } }))
app.use(admission.middleware())
app.get('/work', async (c) => {
  await new Promise((resolve) => setTimeout(resolve, 20))
  return c.json({ waitedMs: c.var.admission?.waitedMs })
})

export default app
