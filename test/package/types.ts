// Compiled in a project of its own with library checks on: the declarations must stand by themselves.
import { type AdmissionVariables, type ConfigInput, createAdmission, type RefusalReason } from '@sluice/admission'
import { AdmissionCore } from '@sluice/admission/core'
import { createGateway } from '@sluice/admission/gateway'
import { ManualClock } from '@sluice/admission/testing'
import { Hono } from 'hono'

const config: ConfigInput = { global: { concurrency: 1 } }
const admission = createAdmission({ config, selectors: { tenant: (c) => c.req.header('x-tenant') } })
const app = new Hono<{ Variables: AdmissionVariables }>()
app.use(admission.middleware())
app.get('/', (c) => c.json({ waitedMs: c.var.admission?.waitedMs }))
app.all('*', createGateway().proxy())
const core = new AdmissionCore({ config, clock: new ManualClock() })
const answer = await core.admit()
export const reason: RefusalReason | undefined = answer.kind === 'refused' ? answer.reason : undefined
