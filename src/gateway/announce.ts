import { unreachable } from '../assert.ts'
import { type Clock, SystemClock } from '../clock.ts'
import { quietly } from '../quietly.ts'
import { type Fetch, hostFetch } from './fetch.ts'
import { type AnnouncementFailure, type Backoff, GatewayLink, type Told } from './gateway-link.ts'
import { RegistryClient } from './registry-client.ts'
import { parseEvents, type UpstreamEvent, type UpstreamSettings } from './upstream-events.ts'
import { whole } from './whole.ts'

export interface AnnounceOptions extends UpstreamSettings {
  /** Where the registries are mounted, one URL a gateway, such as `http://gateway:8080/gateway`. */
  readonly gateways: readonly string[]
  readonly token: string
  /** Names this instance; the same for every process that takes its place. */
  readonly id: string
  /** Where gateways reach this instance: http or https, without credentials. */
  readonly url: string
  /** Grows with every start of a process behind `id`: `Date.now()` read once, or the number of the deployment. */
  readonly generation: number
  /** Time between heartbeats, less up to 10 %; keep it to a third of the gateways' `heartbeatTimeoutMs`. Default 5000. */
  readonly heartbeatMs?: number
  /** Default: from 200 to 5000 ms. */
  readonly backoff?: Backoff
  /** For one exchange with a gateway. Default 2000. */
  readonly timeoutMs?: number
  /** How long `start`, `draining` and `offline` wait for every gateway to know. Default 3000. */
  readonly patienceMs?: number
  /** Called for each failure; what it throws is ignored. */
  readonly onFailure?: (failure: AnnouncementFailure) => void
  readonly clock?: Clock
  readonly fetch?: Fetch
  /** In [0, 1). */
  readonly random?: () => number
}

/** What one gateway has been told. */
export interface GatewayReport {
  readonly url: string
  readonly told: Told
  /** Whether it knows what it should. */
  readonly isSettled: boolean
  /** Failures in a row, and the last of them. */
  readonly failures: number
  readonly lastError: unknown
}

/**
 * Keeps gateways informed of one instance (GWY-7). Nothing here rejects or takes the instance down: what fails is
 * repeated in the background, and each promise resolves when every gateway knows, or after `patienceMs`.
 */
export interface Announcer {
  /** Registers and keeps sending heartbeats; a gateway that is down, or comes later, is registered with then. After `draining` it is the way back. */
  start(): Promise<readonly GatewayReport[]>
  /**
   * Asks for nothing new. Heartbeats go on. The instance may begin to refuse when this resolves: every gateway has heard,
   * and has no request under way to it any more (or that took longer than `patienceMs`).
   */
  draining(reason?: string): Promise<readonly GatewayReport[]>
  /** Takes the instance out, then says no more: no timer of it is left when the promise resolves. */
  offline(): Promise<readonly GatewayReport[]>
  report(): readonly GatewayReport[]
}

/**
 * Makes the announcer of an instance; nothing is sent before `start()` (RUN-1).
 *
 * @throws {GatewayInputError} when a gateway would refuse what it says of the instance.
 * @throws {RangeError} when a time is none that a timer can keep.
 * @throws {TypeError} when a gateway's URL is none, or the token is no bearer token.
 *
 * @example
 * ```ts
 * const announcer = announceInstance({
 *   gateways: [env.GATEWAY],
 *   token: env.GATEWAY_TOKEN,
 *   id: 'orders-1',
 *   url: env.SELF,
 *   generation: Date.now(),
 * })
 * announcer.start()
 * process.once('SIGTERM', async () => {
 *   await announcer.draining('deploy')
 *   await admission.core.stop({ graceMs: 5000 })
 *   await announcer.offline()
 * })
 * ```
 */
export function announceInstance(options: AnnounceOptions): Announcer {
  const {
    gateways,
    token,
    id,
    url,
    generation,
    backoff = { firstMs: 200, maxMs: 5000 },
    random = Math.random,
  } = options
  const time = (name: string, value: number, least: number): number =>
    whole('announce the instance', name, value, least)
  const heartbeatMs = time('heartbeatMs', options.heartbeatMs ?? 5000, 1)
  const timeoutMs = time('timeoutMs', options.timeoutMs ?? 2000, 1)
  const patienceMs = time('patienceMs', options.patienceMs ?? 3000, 0)
  time('backoff.maxMs', backoff.maxMs, time('backoff.firstMs', backoff.firstMs, 1))
  const { clock = new SystemClock(), fetch = hostFetch } = options
  const settings = settingsOf(options)
  let drainingReason: string | undefined
  const waiting = new Set<() => void>()

  const eventOf = (type: UpstreamEvent['type']): UpstreamEvent => {
    const whose = { id, generation }
    switch (type) {
      case 'register':
        return { type, ...whose, url, ...settings }
      case 'draining':
        return drainingReason === undefined ? { type, ...whose } : { type, ...whose, reason: drainingReason }
      case 'heartbeat':
      case 'offline':
        return { type, ...whose }
      default:
        return unreachable(type)
    }
  }
  // What no gateway would take must fail here, not be retried for ever.
  parseEvents([eventOf('register')])

  const onFailure = (failure: AnnouncementFailure): void => void quietly(() => options.onFailure?.(failure))
  const onProgress = (): void => {
    for (const look of [...waiting]) look()
  }
  const links = gateways.map((gateway) => {
    const client = new RegistryClient({ url: gateway, token, timeoutMs, fetch, clock })
    return new GatewayLink({
      url: gateway,
      client,
      clock,
      random,
      heartbeatMs,
      backoff,
      eventOf,
      onProgress,
      onFailure,
    })
  })
  const report = (): readonly GatewayReport[] =>
    links.map(({ url, told, isSettled, failures, lastError }) => ({ url, told, isSettled, failures, lastError }))

  /** Resolves when that is so for every link, or after `patienceMs`. */
  const whenAll = (isSo: (link: GatewayLink) => boolean): Promise<readonly GatewayReport[]> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (links.every(isSo)) end()
      }
      const end = (): void => {
        waiting.delete(look)
        cancelTimer()
        resolve(report())
      }
      const cancelTimer = clock.callAt(clock.nowMs() + patienceMs, end)
      waiting.add(look)
      look()
    })

  let starts = 0
  return {
    start() {
      starts += 1
      drainingReason = undefined // of a draining that is over
      for (const link of links) link.want('up')
      return whenAll(({ isSettled }) => isSettled)
    },
    draining(reason) {
      drainingReason ??= reason?.slice(0, 500)
      for (const link of links) link.want('draining')
      return whenAll(({ isQuiet }) => isQuiet)
    },
    async offline() {
      const startsThen = starts
      for (const link of links) link.want('gone')
      const reports = await whenAll(({ isSettled }) => isSettled)
      // Unless it was started again meanwhile, nothing of it may keep the process alive.
      if (startsThen === starts) for (const link of links) link.silence()
      return reports
    },
    report,
  }
}

function settingsOf({ weight, warmupMs, labels, props }: UpstreamSettings): UpstreamSettings {
  return {
    ...(weight === undefined ? {} : { weight }),
    ...(warmupMs === undefined ? {} : { warmupMs }),
    ...(labels === undefined ? {} : { labels }),
    ...(props === undefined ? {} : { props }),
  }
}
