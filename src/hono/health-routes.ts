import { Hono } from 'hono'
import type { AdmissionCore } from '../admission-core.ts'
import { exempt } from './exempt.ts'

/**
 * `/livez`: 200 as long as the process answers, also while draining. `/readyz`: 200 while new calls are welcome, 503
 * while announcing, draining or stopped (DRN-4). No calls: they answer when the server is full.
 */
export function healthRoutes(core: AdmissionCore): Hono {
  const noStore = { 'Cache-Control': 'no-store' }
  const app = new Hono()
  app.get(
    '/livez',
    exempt((c) => c.text('live', 200, noStore)),
  )
  app.get(
    '/readyz',
    exempt((c) => (core.ready ? c.text('ready', 200, noStore) : c.text('not ready', 503, noStore))),
  )
  return app
}
