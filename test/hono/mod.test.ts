import { Hono } from 'hono'
import { expect, it } from 'vitest'
import * as entry from '../../mod.ts'

it('CFG-3 the entry exports these values and no others', () => {
  expect(Object.keys(entry).sort()).toEqual([
    'AcknowledgedRefusalError',
    'AdmissionConfigError',
    'AdmissionConflictError',
    'AdmissionStateError',
    'BodyStalledError',
    'UnsupportedTransitionError',
    'clientAddress',
    'configJsonSchema',
    'createAdmission',
    'parseConfig',
  ])
})

it('REL-1 the program of the module comment serves', async () => {
  const admission = entry.createAdmission({ config: { global: { concurrency: 100 }, queue: { maxQueuedCalls: 200 } } })
  const app = new Hono()
  app.route('/admission', admission.admin({ tokens: { write: ['secret'] } }))
  app.route('/', admission.health())
  app.use(admission.middleware())
  app.get('/', (c) => c.text('Hello'))
  expect(await (await app.request('/')).text()).toBe('Hello')
  expect((await app.request('/readyz')).status).toBe(200)
  expect((await app.request('/admission/state')).status).toBe(401)
  expect(admission.core.snapshot()).toMatchObject({ active: 0, totals: { admitted: 1 } })
})
