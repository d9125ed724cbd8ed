import { setImmediate as turn } from 'node:timers/promises'
import { Hono } from 'hono'
import { expect } from 'vitest'
import {
  createGateway,
  type Gateway,
  type GatewayEnv,
  type GatewayOptions,
  type ProxyOptions,
} from '../../src/gateway.ts'
import { ManualClock } from '../../src/manual-clock.ts'

export const TOKEN = 'sesame'

/** Lets everything that is ready to run do so; time stands still. */
export async function flush(): Promise<void> {
  for (let count = 0; count < 4; count += 1) await turn()
}

/** What Node's fetch throws when nobody listens. */
export function refused(): Error {
  return coded('ECONNREFUSED', 'connect ECONNREFUSED 10.0.0.1:80')
}

/** What Node's fetch throws when a socket is closed under the request. */
export function cut(): Error {
  return coded('UND_ERR_SOCKET', 'other side closed')
}

function coded(code: string, message: string): Error {
  return new TypeError('fetch failed', { cause: Object.assign(new Error(message), { code }) })
}

type Answer = Response | Promise<Response>

/** The network of a test: what answers at an origin, and every request that was sent there. */
export class Network {
  readonly #hosts: Map<string, (request: Request) => Answer>
  readonly requests: Request[]

  constructor() {
    this.#hosts = new Map()
    this.requests = []
  }

  /** Puts an answer, or a Hono app, at an origin; undefined takes it away. */
  at(origin: string, host: ((request: Request) => Answer) | Hono | undefined): void {
    if (host === undefined) this.#hosts.delete(origin)
    else this.#hosts.set(origin, host instanceof Hono ? (request) => host.fetch(request) : host)
  }

  fetch = async (request: Request): Promise<Response> => {
    const host = this.#hosts.get(new URL(request.url).origin)
    if (host === undefined) throw refused()
    this.requests.push(request)
    return host(request)
  }

  /** Origins that were asked, in order. */
  get origins(): readonly string[] {
    return this.requests.map(({ url }) => new URL(url).origin)
  }
}

export interface Setup {
  readonly clock: ManualClock
  readonly network: Network
  readonly gateway: Gateway
  readonly app: Hono<GatewayEnv>
  /** Sends an event to the registry in this process. */
  register(id: string, more?: { generation?: number; weight?: number; warmupMs?: number; url?: string }): void
  drain(id: string, generation?: number): void
  /** Ids of the lists healthy, unhealthy, draining. */
  lists(): readonly (readonly string[])[]
  /** The id of the upstream that answers a request. */
  ask(path?: string, init?: RequestInit): Promise<string>
}

/** Where the upstream with this id listens. */
export function originOf(id: string): string {
  return `http://${id}.test`
}

/** A gateway on a manual clock and a network of its own; `ids` are registered, and answer their id. */
export function setup(ids: readonly string[] = [], options: GatewayOptions = {}, proxy: ProxyOptions = {}): Setup {
  const clock = new ManualClock()
  const network = new Network()
  const gateway = createGateway({ clock, fetch: network.fetch, random: () => 0.5, ...options })
  const app = new Hono<GatewayEnv>()
  app.route('/gateway', gateway.registry({ tokens: [TOKEN] }))
  app.all('*', gateway.proxy(proxy))
  const register: Setup['register'] = (id, more = {}) => {
    gateway.upstreams.apply([{ type: 'register', id, url: originOf(id), ...more }])
  }
  for (const id of ids) {
    network.at(originOf(id), () => new Response(id))
    register(id)
  }
  return {
    clock,
    network,
    gateway,
    app,
    register,
    drain: (id, generation) => {
      gateway.upstreams.apply([{ type: 'draining', id, ...(generation === undefined ? {} : { generation }) }])
    },
    lists: () => {
      const { healthy, unhealthy, draining } = gateway.upstreams.list()
      return [healthy, unhealthy, draining].map((list) => list.map(({ id }) => id))
    },
    ask: async (path = '/', init = {}) => {
      const response = await app.request(`http://gateway.test${path}`, init)
      const text = await response.text()
      return response.status === 200 ? text : `${response.status} ${reasonIn(text)}`
    },
  }
}

/** Nothing is under way and no timer is left: the last line of a test. */
export function expectQuiet({ gateway, clock }: Pick<Setup, 'gateway' | 'clock'>): void {
  gateway.stop()
  const { healthy, unhealthy, draining } = gateway.upstreams.list()
  for (const { id, active } of [...healthy, ...unhealthy, ...draining])
    expect({ id, active }).toEqual({ id, active: 0 })
  expect(clock.pending).toBe(0)
}

/** The `reason` of a problem document. */
export function reasonIn(text: string): string {
  const document: unknown = JSON.parse(text)
  const { reason }: { reason?: unknown } = Object(document)
  return String(reason)
}

/** A response's JSON, for tests that look at a member or two. */
export async function jsonOf(response: Response): Promise<Record<string, unknown>> {
  return Object.assign(Object.create(null), await response.json())
}
