// The README's first program without its server: what must run wherever the package is installed.
import { createAdmission } from '@sluice/admission'
import { AdmissionCore } from '@sluice/admission/core'
import { createGateway } from '@sluice/admission/gateway'
import { ManualClock } from '@sluice/admission/testing'
import { Hono } from 'hono'

const admission = createAdmission({ config: { global: { concurrency: 1 } } })
const app = new Hono()
app.use(admission.middleware())
app.get('/', (c) => c.text(`running ${admission.core.snapshot().active}`))

const admitted = await app.request('/')
const body = await admitted.text()
if (admitted.status !== 200 || body !== 'running 1') throw new Error(`Not admitted: ${admitted.status} ${body}`)

const lease = await admission.core.admit()
const refused = await app.request('/')
lease.release()
const { reason } = await refused.json()
if (refused.status !== 503 || reason !== 'concurrency') throw new Error(`Not refused: ${refused.status} ${reason}`)

const clock = new ManualClock()
const core = new AdmissionCore({ clock, config: { global: { concurrency: 1 }, queue: { maxQueuedCalls: 1 } } })
core.admit()
const waiting = core.admit()
clock.advance(1000)
const late = await waiting
if (late.reason !== 'queue_timeout') throw new Error(`Not timed out: ${JSON.stringify(late)}`)

const nobody = await new Hono().all('*', createGateway().proxy()).request('/')
if (nobody.status !== 503) throw new Error(`Proxied to nobody: ${nobody.status}`)

const name = globalThis.Deno !== undefined ? 'deno' : globalThis.Bun !== undefined ? 'bun' : 'node'
const { serveWithAdmission } = await import(`@sluice/admission/${name}`)
const server = await serveWithAdmission(app, admission, { port: 0, hostname: '127.0.0.1' })
const served = await fetch(`http://127.0.0.1:${server.port}/`)
if ((await served.text()) !== 'running 1') throw new Error(`Not served: ${served.status}`)
const { outcome } = await server.shutdown({ announceMs: 0 })
if (outcome !== 'drained') throw new Error(`Not drained: ${outcome}`)

console.log('the package works')
