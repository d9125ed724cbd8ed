/**
 * One count for many isolates: a Durable Object holds the permits and the queue, Workers do the work.
 *
 * Each request costs a call to the object before it starts. A permit is a stub: when the Worker that holds it is gone,
 * its end of the connection is disposed, and the permit with it, so that a Worker that dies cannot keep one.
 */
import { DurableObject, env, RpcTarget } from 'cloudflare:workers'
import { createAdmission, type Lease, type Refusal } from '@sluice/admission'
import { Hono, type MiddlewareHandler } from 'hono'

const config = {
  global: { concurrency: 2 },
  contracts: { '/reports': { concurrency: 1 } },
  queue: { maxQueuedCalls: 100, maxQueueDelayMs: 5000 },
}

/** A lease that can be handed to another isolate. */
class Permit extends RpcTarget {
  readonly #lease: Lease

  constructor(lease: Lease) {
    super()
    this.#lease = lease
  }

  /** Also called when the holder is gone. */
  [Symbol.dispose](): void {
    this.#lease.release()
  }
}

/** The object that everybody asks; there is one. */
export class Gate extends DurableObject {
  readonly #admission = createAdmission({ config })
  readonly #app = new Hono().route('/admission', this.#admission.admin({ tokens: { write: [env.ADMIN_TOKEN] } }))

  /** The operator's side, as on any server. */
  fetch(request: Request): Response | Promise<Response> {
    return this.#app.fetch(request)
  }

  async admit(contract: string): Promise<{ permit: Permit } | { refusal: Refusal }> {
    const answer = await this.#admission.core.admit({ contract })
    return answer.kind === 'admitted' ? { permit: new Permit(answer) } : { refusal: answer }
  }
}

/** `Gate` as a Worker sees it: what comes back is a stub, to be disposed of. */
interface GateStub {
  fetch(request: Request): Promise<Response>
  admit(contract: string): Promise<({ permit: Disposable } | { refusal: Refusal }) & Disposable>
}
interface Bindings {
  readonly GATE: { getByName(name: string): GateStub }
}

function limitedAs(contract: string): MiddlewareHandler<{ Bindings: Bindings }> {
  return async (c, next) => {
    const serve = async (): Promise<Response | undefined> => {
      const answer = await c.env.GATE.getByName('everybody').admit(contract)
      try {
        if ('refusal' in answer) return c.json(answer.refusal, 503, { 'Retry-After': '1' })
        await next()
        return undefined
      } finally {
        answer[Symbol.dispose]()
      }
    }
    const served = serve()
    // Runs to its end, and frees the permit, though the client resets the connection.
    c.executionCtx.waitUntil(served.catch(() => undefined))
    return await served
  }
}

const app: Hono<{ Bindings: Bindings }> = new Hono()
app.all('/admission/*', (c) => c.env.GATE.getByName('everybody').fetch(c.req.raw))
app.use('/reports/*', limitedAs('/reports'))
app.use('/work/*', limitedAs('/work'))
app.get('/reports', work)
app.get('/work', work)

async function work(): Promise<Response> {
  await new Promise((resolve) => setTimeout(resolve, 20))
  return new Response('done')
}

export default app
