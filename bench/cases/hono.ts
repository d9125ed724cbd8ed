import { getRequestListener } from '@hono/node-server'
import { Hono, type MiddlewareHandler } from 'hono'
import { rateLimiter } from 'hono-rate-limiter'
import { type AdmissionOptions, createAdmission } from '../../mod.ts'
import type { Contestant, Group } from '../engine.ts'
import { runtime } from '../host.ts'
import { StillClock } from '../still-clock.ts'
import { AMPLE, AMPLE_BUCKET, ROUTE_PATH, routeLimits } from './limits.ts'

// The server's adapter puts a Response of its own in the place of Node's, which is so dear that it hides all else.
if (runtime === 'node') getRequestListener(() => new Response())

/** An application with one route in a sub-app, below whatever `install` mounts; requests go straight to `app.fetch`. */
function served(name: string, status: number, install: (app: Hono) => void, clock = new StillClock()): Contestant {
  return {
    name,
    make() {
      const app = new Hono()
      install(app)
      app.route(
        '/orders',
        new Hono().get('/list', (c) => c.text('ok')),
      )
      const request = new Request(`http://127.0.0.1${ROUTE_PATH}`)
      let nowMs = 0
      return {
        async run(n) {
          nowMs += 1
          clock.set(nowMs)
          let count = 0
          for (let left = n; left > 0; left -= 1) {
            const answered = app.fetch(request)
            const response = answered instanceof Promise ? await answered : answered
            if (response.status === status) count += 1
          }
          return count
        },
        expected: (n) => n,
      }
    },
  }
}

function admission(
  name: string,
  status: number,
  config: AdmissionOptions['config'],
  more?: AdmissionOptions,
): Contestant {
  const clock = new StillClock()
  const install = (app: Hono): void => {
    const options = config === undefined ? {} : { config }
    app.use(createAdmission({ ...options, ...more, clock }).middleware())
  }
  return served(name, status, install, clock)
}

const limiter = (standardHeaders: boolean): MiddlewareHandler =>
  rateLimiter({ windowMs: 1000, limit: 1e9, standardHeaders, keyGenerator: () => 'one' })

const bare = served('hono.bare', 200, () => {})
const noOp = served('hono.no-op', 200, (app) => void app.use(async (_c, next) => await next()))
const noOpReturning = served('hono.no-op.returning', 200, (app) => void app.use((_c, next) => next()))
const ours = admission('hono.admission', 200, routeLimits(AMPLE))
const rated = { ...routeLimits(AMPLE), global: { concurrency: AMPLE, rate: AMPLE_BUCKET } }
const withRate = admission('hono.admission.rate', 200, rated)

/** Each group compiles for its own cases only, so what a goal compares stands alone with its yardstick. */
export const honoGroups: readonly Group[] = [
  {
    name: 'hono.admission',
    contestants: () => [bare, noOp, ours],
    ratios: [
      { of: 'hono.admission', to: ['hono.no-op'], goal: 'P16', max: 1.4 },
      { of: 'hono.admission', to: ['hono.bare'] },
      { of: 'hono.no-op', to: ['hono.bare'] },
    ],
  },
  {
    name: 'hono.other',
    contestants: () => [
      bare,
      noOp,
      noOpReturning,
      withRate,
      admission('hono.admission.disabled', 200, undefined),
      admission('hono.refusal', 503, routeLimits(0)),
    ],
    ratios: [
      { of: 'hono.admission.rate', to: ['hono.no-op'] },
      { of: 'hono.admission.disabled', to: ['hono.no-op'] },
      { of: 'hono.refusal', to: ['hono.bare'] },
      { of: 'hono.no-op.returning', to: ['hono.no-op'] },
    ],
  },
  // Both limit a rate, so both know how many are left.
  {
    name: 'hono.peer',
    contestants: () => [withRate, served('hono-rate-limiter', 200, (app) => void app.use(limiter(false)))],
    ratios: [{ of: 'hono.admission.rate', to: ['hono-rate-limiter'], goal: 'P17', max: 0.85 }],
  },
  {
    name: 'hono.peer.headers',
    contestants: () => [
      admission('hono.admission.headers', 200, rated, { rateLimitHeaders: 'list-r-t' }),
      served('hono-rate-limiter.headers', 200, (app) => void app.use(limiter(true))),
    ],
    ratios: [{ of: 'hono.admission.headers', to: ['hono-rate-limiter.headers'], goal: 'P17', max: 0.7 }],
  },
]
