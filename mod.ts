/**
 * Admission control for Hono: each request starts now, waits in a bounded queue, or is refused at once, and an operator
 * changes every limit while the server runs.
 *
 * ```ts
 * import { Hono } from 'hono'
 * import { createAdmission } from '@sluice/admission'
 *
 * const admission = createAdmission({ config: { global: { concurrency: 100 }, queue: { maxQueuedCalls: 200 } } })
 * const app = new Hono()
 * app.route('/admission', admission.admin({ tokens: { write: [process.env.ADMIN_TOKEN ?? ''] } }))
 * app.route('/', admission.health())
 * app.use(admission.middleware())
 * app.get('/', (c) => c.text('Hello'))
 *
 * export default app
 * ```
 *
 * @module
 */
export { configJsonSchema } from './src/config/json-schema.ts'
export { parseConfig } from './src/config/parse.ts'
export type * from './src/core.ts'
export {
  AdmissionConfigError,
  AdmissionConflictError,
  AdmissionStateError,
  UnsupportedTransitionError,
} from './src/errors.ts'
export { AcknowledgedRefusalError } from './src/hono/acknowledge.ts'
export type { AdminIdentity, AdminOptions, AdminRole } from './src/hono/admin-auth.ts'
export type { RouteIdentity } from './src/hono/call-from-context.ts'
export type { ClientAddressOptions } from './src/hono/client-address.ts'
export { clientAddress } from './src/hono/client-address.ts'
export type { Admission, AdmissionOptions } from './src/hono/create-admission.ts'
export { createAdmission } from './src/hono/create-admission.ts'
export { BodyStalledError } from './src/hono/hold-body.ts'
export type { AdmissionInfo, AdmissionVariables } from './src/hono/middleware.ts'
export type { RateLimitHeaders } from './src/hono/rate-limit-headers.ts'
