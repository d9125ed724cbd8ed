import { Hono, type MiddlewareHandler } from 'hono'
import { rateLimiter } from 'hono-rate-limiter'
import { type Admission, createAdmission } from '../../mod.ts'
import type { ConfigInput } from '../../src/config/types.ts'
import { AMPLE, AMPLE_BUCKET, CHANGED, manyRules, ROUTE_PATH, routeLimits } from '../cases/limits.ts'
import { longestBlockMs } from '../longest-block.ts'
import { burn, stepsFor } from './burn.ts'
import { ADMIN_PATH, ADMIN_TOKEN, POLICIES, WAIT_MS, WORK_MS } from './policies.ts'
import type { AppCounts, UpdateReport } from './protocol.ts'

export interface LoadApp {
  readonly app: Hono
  readonly path: string
  readonly body: string
  counts(): AppCounts
}

/** What a server serves; each app by its name. */
export interface Served {
  readonly apps: { readonly [name: string]: LoadApp }
  update?(): Promise<UpdateReport>
}

/** By the name that the server is started with; the number is what else it is told. */
export const SERVED: { readonly [name: string]: (size: number) => Served } = { light, overload, rules }

/** A route of a sub-app that only answers, below each of the middlewares that are compared. */
function light(): Served {
  const limits = routeLimits(AMPLE)
  const withRate = { ...limits, global: { concurrency: AMPLE, rate: AMPLE_BUCKET } }
  const mounted = (middleware?: MiddlewareHandler, admission?: Admission): LoadApp => {
    const app = new Hono()
    if (middleware !== undefined) app.use(middleware)
    const orders = new Hono().get('/list', (c) => c.text('ok'))
    app.route('/orders', orders)
    return { app, path: ROUTE_PATH, body: 'ok', counts: () => ({ mostRunning: null, admitted: admitted(admission) }) }
  }
  const admitting = (config?: ConfigInput): LoadApp => {
    const admission = createAdmission(config === undefined ? {} : { config })
    return mounted(admission.middleware(), admission)
  }
  const limiter = rateLimiter({ windowMs: 1000, limit: 1e9, standardHeaders: false, keyGenerator: () => 'one' })
  return {
    apps: {
      bare: mounted(),
      'no-op': mounted(async (_c, next) => await next()),
      admission: admitting(limits),
      'admission.rate': admitting(withRate),
      'admission.disabled': admitting(),
      'hono-rate-limiter': mounted(limiter),
    },
  }
}

/** A handler that waits and works, under each policy. */
function overload(): Served {
  const steps = stepsFor(WORK_MS)
  const body = `ok ${burn(steps)}`
  const under = (config: ConfigInput | undefined): LoadApp => {
    const app = new Hono()
    const admission = config === undefined ? undefined : createAdmission({ config })
    if (admission !== undefined) {
      app.route(ADMIN_PATH, admission.admin({ tokens: { write: [ADMIN_TOKEN] } }))
      app.use(admission.middleware())
    }
    let [running, mostRunning] = [0, 0]
    app.get('/', async (c) => {
      running += 1
      mostRunning = Math.max(mostRunning, running)
      try {
        await new Promise((resolve) => setTimeout(resolve, WAIT_MS))
        return c.text(`ok ${burn(steps)}`)
      } finally {
        running -= 1
      }
    })
    const counts = (): AppCounts => {
      const most = mostRunning
      mostRunning = running
      return { mostRunning: most, admitted: admitted(admission) }
    }
    return { app, path: '/', body, counts }
  }
  return { apps: Object.fromEntries(Object.entries(POLICIES).map(([name, { config }]) => [name, under(config)])) }
}

const LIGHT_WORK_MS = 0.2

/** A light handler under so many rules, by turns those of two documents. */
function rules(count: number): Served {
  const documents = [manyRules(count), manyRules(count, CHANGED)] as const
  const admission = createAdmission({ config: documents[0] })
  const steps = stepsFor(LIGHT_WORK_MS)
  const area = new Hono().get('/thing-1', (c) => c.text(`ok ${burn(steps)}`))
  const app = new Hono()
  app.use(admission.middleware())
  app.route('/area-0', area)
  let updates = 0
  return {
    apps: {
      rules: {
        app,
        path: '/area-0/thing-1',
        body: `ok ${burn(steps)}`,
        counts: () => ({ mostRunning: null, admitted: admitted(admission) }),
      },
    },
    async update() {
      updates += 1
      const next = documents[updates % 2] ?? {}
      let changed = 0
      const startMs = performance.now()
      const blockMs = await longestBlockMs(async () => {
        const { plan } = await admission.core.update(next)
        changed = plan.resized.length
      })
      return { changed, tookMs: performance.now() - startMs, blockMs }
    },
  }
}

function admitted(admission: Admission | undefined): number | null {
  return admission?.core.snapshot().totals.admitted ?? null
}
