import { setTimeout as sleep } from 'node:timers/promises'
import type { UpstreamLists, UpstreamView } from '../../../src/gateway.ts'
import { type Answer, get, once, post } from '../client.ts'
import { type Child, freePort, type Runtime, startChild } from './child.ts'
import type { GatewayFailures, Killed } from './gateway.ts'

export const TOKEN = 'drill-token'

const READY_MS = 60_000

/** One of the places behind a gateway; the processes that hold it change. */
export interface Place {
  readonly id: string
  port: number
  child: Child
}

export interface FleetOptions {
  readonly runtime: Runtime
  readonly gatewayRuntime: Runtime
  readonly announceMs: number
  readonly lifeMs: number
}

/** A gateway and instances that announce themselves to it, each a process of its own. */
export class Fleet {
  readonly port: number
  readonly gateway: Child
  readonly places: readonly Place[]
  /** Uploads that instances counted, of those that have ended in order. */
  uploads: number
  /** How long the gateway took to answer each announcement of a drain. Milliseconds. */
  readonly toldMs: number[]
  readonly #options: FleetOptions

  private constructor(options: FleetOptions, port: number, gateway: Child, places: readonly Place[]) {
    this.#options = options
    this.port = port
    this.gateway = gateway
    this.places = places
    this.uploads = 0
    this.toldMs = []
  }

  static async start(options: FleetOptions, count = 3): Promise<Fleet> {
    const gateway = await startChild(
      options.gatewayRuntime,
      'gateway',
      { port: await freePort(), token: TOKEN },
      options.lifeMs,
    )
    const port = Number(await gateway.line('port '))
    const places = await Promise.all(Array.from({ length: count }, (_, n) => place(`orders-${n + 1}`, port, options)))
    const fleet = new Fleet(options, port, gateway, places)
    await fleet.allReady()
    return fleet
  }

  /** Ends the process of a place by a signal, waits for its exit, and starts the one that takes over. The exit code. */
  async restart(at: number, signal: NodeJS.Signals, isSamePort: boolean): Promise<number | null> {
    const old = this.#place(at)
    old.child.kill(signal)
    const code = await old.child.exited
    if (signal === 'SIGTERM') {
      this.uploads += Number(await old.child.line('uploads '))
      this.toldMs.push(Number(await old.child.line('told ')))
    }
    await this.replace(at, isSamePort)
    return code
  }

  /** Starts a process for a place whose process has ended; resolves when the gateway selects it. */
  async replace(at: number, isSamePort: boolean): Promise<void> {
    const old = this.#place(at)
    const next = await place(old.id, this.port, this.#options, isSamePort ? old.port : undefined)
    old.port = next.port
    old.child = next.child
    await this.allReady()
  }

  /** Waits until the gateway can select every place, as the process that holds it now. */
  allReady(): Promise<unknown> {
    return this.until((lists) =>
      this.places.every(({ id, port, child }) => {
        const view = lists.healthy.find((each) => each.id === id)
        return !child.hasExited && view?.health === 'healthy' && view.url.endsWith(`:${port}`)
      }),
    )
  }

  async until(isWanted: (lists: UpstreamLists) => boolean): Promise<UpstreamLists> {
    const endMs = performance.now() + READY_MS
    for (;;) {
      const lists = await this.lists()
      if (isWanted(lists)) return lists
      if (performance.now() > endMs) throw new Error(`Not as wanted within ${READY_MS} ms: ${JSON.stringify(lists)}`)
      await sleep(20)
    }
  }

  async lists(): Promise<UpstreamLists> {
    return JSON.parse(await this.#ask(get('/gateway/upstreams', { Authorization: `Bearer ${TOKEN}` })))
  }

  async view(id: string): Promise<UpstreamView | undefined> {
    const { healthy, unhealthy, draining } = await this.lists()
    return [...healthy, ...unhealthy, ...draining].find((each) => each.id === id)
  }

  async failures(): Promise<GatewayFailures> {
    return JSON.parse(await this.#ask(get('/drill/failures')))
  }

  /** Kills the process of a place in the turn in which the gateway counts what is under way on it; waits for its ejection. */
  async kill9(at: number): Promise<Killed> {
    const { id, child } = this.#place(at)
    return JSON.parse(await this.#ask(post(`/drill/kill/${id}/${child.pid}`, '')))
  }

  once(bytes: string): Promise<Answer | undefined> {
    return once(this.port, bytes)
  }

  async end(): Promise<void> {
    await Promise.all([this.gateway, ...this.places.map(({ child }) => child)].map((child) => child.end()))
  }

  #place(at: number): Place {
    const place = this.places[at % this.places.length]
    if (place === undefined) throw new Error('There are no places')
    return place
  }

  async #ask(bytes: string): Promise<string> {
    const answer = await once(this.port, bytes)
    if (answer?.status !== 200) throw new Error(`The gateway answered ${answer?.status}: ${answer?.body}`)
    return answer.body
  }
}

/** Starts an instance; a port that somebody took in the meantime is given up for another. */
async function place(id: string, gateway: number, options: FleetOptions, wanted?: number): Promise<Place> {
  const { runtime, announceMs, lifeMs } = options
  const gateways = [`http://127.0.0.1:${gateway}/gateway`]
  const start = async (port: number): Promise<Place> => ({
    id,
    port,
    child: await startChild(runtime, 'instance', { id, port, gateways, token: TOKEN, announceMs }, lifeMs),
  })
  try {
    return await start(wanted ?? (await freePort()))
  } catch (error) {
    if (!/in ?use/i.test(String(error))) throw error
    return start(await freePort())
  }
}
