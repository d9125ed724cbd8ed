import process from 'node:process'
import { Hono } from 'hono'
import { createGateway } from '../../../src/gateway.ts'
import { endWithParent } from './instance.ts'

/** What a drill wants of a gateway; comes as JSON in the environment. */
export interface GatewayOptions {
  readonly port: number
  readonly token: string
}

/** What a gateway under drill has seen go wrong with upstreams, by kind. */
export interface GatewayFailures {
  readonly failed: { readonly [failure: string]: number }
  readonly retried: number
}

/** What became of an instance that was killed. */
export interface Killed {
  /** On the clock of `Date.now()`. */
  readonly killedAtMs: number
  readonly ejectedAtMs: number
  /** Requests under way on it in the very turn in which it was killed. */
  readonly active: number
  /** Requests sent to it after that, until it was ejected. */
  readonly sentAfter: number
}

type Listen = (fetch: (request: Request) => Response | Promise<Response>, port: number) => Promise<number>

/** A gateway as an application would write it, and two routes for the drills. */
export async function runGateway(listen: Listen): Promise<void> {
  const { port, token }: GatewayOptions = JSON.parse(process.env.DRILL ?? '{}')
  let deadUrl = ''
  let sentAfter = 0
  const gateway = createGateway({
    fetch: (request) => {
      if (deadUrl !== '' && request.url.startsWith(deadUrl) && !request.url.endsWith('/readyz')) sentAfter += 1
      return fetch(request)
    },
    algorithm: 'least-active',
    // A busy machine is no failed instance: only what cannot be reached is to be turned away.
    probes: { path: '/readyz', intervalMs: 500, timeoutMs: 5000, fall: 2 },
    // A replacement on the port of its predecessor: until a probe has been there and back, there may be connections left
    // that the predecessor has closed.
    selectUnknown: false,
    heartbeatTimeoutMs: 30_000,
  })
  const failed: { [failure: string]: number } = {}
  let retried = 0
  const app = new Hono()
  app.route('/gateway', gateway.registry({ tokens: [token] }))
  app.get('/drill/failures', (c) => c.json({ failed, retried } satisfies GatewayFailures))
  app.post('/drill/kill/:id/:pid', (c) => {
    const id = c.req.param('id')
    const { activeCount: active, url } = gateway.upstreams.get(id) ?? { activeCount: 0, url: '' }
    // One turn: nothing can end or begin between the count and the kill.
    process.kill(Number(c.req.param('pid')), 'SIGKILL')
    const killedAtMs = Date.now()
    deadUrl = `${url}/`
    sentAfter = 0
    return new Promise<Response>((resolve) => {
      const unsubscribe = gateway.upstreams.onChange(() => {
        if (gateway.upstreams.get(id)?.health !== 'unhealthy') return
        unsubscribe()
        deadUrl = ''
        resolve(c.json({ killedAtMs, ejectedAtMs: Date.now(), active, sentAfter } satisfies Killed))
      })
    })
  })
  app.all(
    '*',
    gateway.proxy({
      onFailure: ({ failure, isRetried }) => {
        failed[failure] = (failed[failure] ?? 0) + 1
        if (isRetried) retried += 1
      },
    }),
  )
  gateway.start()
  const listening = await listen(app.fetch, port)
  process.on('SIGTERM', () => process.exit(0))
  endWithParent()
  console.log(`port ${listening}`)
}
