import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Config, ConfigInput, Snapshot } from '../../src/core.ts'
import { TOKEN } from './app.ts'
import { type Answer, get, once, post } from './client.ts'
import type { Counts } from './probe.ts'
import type { Runtime, ServerProcess } from './servers.ts'

/** Ten times as much as in a usual run, which has to be short. */
export const IS_FULL: boolean = process.env.SLUICE_RUNTIMES_FULL === '1'

const QUIET_MS = 8000

/** What a configuration is sent with. */
export const PUT_FIELDS: { readonly [name: string]: string } = {
  Authorization: `Bearer ${TOKEN}`,
  'Content-Type': 'application/json',
  'If-Match': '*',
}

/** One case of the suite: the same on every runtime. */
export interface Case {
  /** A sentence that can be false, led by its tag. */
  readonly name: string
  /** For the table. */
  readonly label: string
  /** Where it can be run; default: everywhere. */
  readonly on?: readonly Runtime[]
  /** Returns what was measured, for the table. */
  readonly run: (lab: Lab) => Promise<string | undefined>
}

/** A running server as a case sees it: its port, its operator's side, and what its handlers have seen. */
export class Lab {
  readonly runtime: Runtime
  readonly server: ServerProcess
  readonly port: number

  constructor(runtime: Runtime, server: ServerProcess, socket = 'http') {
    this.runtime = runtime
    this.server = server
    this.port = server.port(socket)
  }

  /** Where requests have a signal that fires; on workerd that is another worker of the same process. */
  withSignals(): Lab {
    return this.runtime === 'workerd' ? new Lab(this.runtime, this.server, 'signals') : this
  }

  /** A worker with a compatibility date from before requests could wake each other. */
  withOldDate(): Lab {
    return new Lab(this.runtime, this.server, 'old')
  }

  /** Replaces the whole configuration, and forgets what handlers saw before. */
  async configure(config: ConfigInput): Promise<void> {
    const answer = await this.put(config)
    if (answer?.status !== 200) throw new Error(`PUT /config: ${answer?.status} ${answer?.body}`)
    await this.once(post('/probe/reset', ''))
  }

  put(config: ConfigInput | Config): Promise<Answer | undefined> {
    return this.once(post('/admission/config', JSON.stringify(config), PUT_FIELDS).replace('POST', 'PUT'))
  }

  once(bytes: string | Uint8Array): Promise<Answer | undefined> {
    return once(this.port, bytes)
  }

  async state(): Promise<Snapshot> {
    const answer = await this.once(get('/admission/state', { Authorization: `Bearer ${TOKEN}` }))
    return JSON.parse(answer?.body ?? 'null')
  }

  async counts(): Promise<Counts> {
    const answer = await this.once(get('/probe'))
    return JSON.parse(answer?.body ?? 'null')
  }

  /** Waits until a count or a state is as wanted; what it was last is in the failure. */
  async until<T>(
    read: () => Promise<T>,
    isWanted: (value: T) => boolean,
    what: string,
    ms: number = QUIET_MS,
  ): Promise<T> {
    const endMs = Date.now() + ms
    for (;;) {
      const value = await read()
      if (isWanted(value)) return value
      if (Date.now() > endMs) throw new Error(`not ${what} within ${ms} ms: ${JSON.stringify(value)}`)
      await sleep(10)
    }
  }

  /** Waits until nothing runs, waits or is being sent, and says how long that took. Fails when something leaks. */
  async quiet(ms: number = QUIET_MS): Promise<number> {
    const sinceMs = Date.now()
    await this.until(
      () => this.#held(),
      (held) => Object.values(held).every((count) => count === 0),
      'quiet',
      ms,
    )
    return Date.now() - sinceMs
  }

  /** `count` requests at once; each must be served. */
  async admits(count: number, bytes: string = get('/work/sleep?ms=50')): Promise<void> {
    const answers = await Promise.all(Array.from({ length: count }, () => this.once(bytes)))
    expect(answers.map((answer) => answer?.status)).toEqual(answers.map(() => 200))
  }

  /**
   * Exactly `limit` calls may run: a permit given back twice would let more in, one that leaked fewer. The
   * configuration is replaced by one without a queue.
   */
  async hasExactly(limit: number, path: string = '/work/sleep?ms=150'): Promise<void> {
    await this.configure({ global: { concurrency: limit } })
    const answers = await Promise.all(Array.from({ length: limit + 1 }, () => this.once(get(path))))
    const statuses = answers.map((answer) => answer?.status).sort()
    expect(statuses).toEqual([...Array.from({ length: limit }, () => 200), 503])
    await this.quiet()
  }

  /** What is held now, anywhere. */
  async #held(): Promise<{ readonly [what: string]: number }> {
    const [state, counts] = await Promise.all([this.state(), this.counts()])
    const bodies = state.deliveries.reduce((sum, each) => sum + each.openBodies, 0)
    const permits = state.scopes.reduce((sum, each) => sum + each.active, 0)
    const { calls, bytes } = state.queued
    return { active: state.active, permits, bodies, queued: calls, bytes, running: counts.running }
  }
}
