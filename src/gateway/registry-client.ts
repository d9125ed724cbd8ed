import * as v from 'valibot'
import { type Clock, SystemClock } from '../clock.ts'
import { isBearerToken } from '../hono/bearer.ts'
import { type Fetch, hostFetch, within } from './fetch.ts'
import type { UpstreamEvent } from './upstream-events.ts'
import type { EventsAnswer } from './upstreams.ts'

export interface RegistryClientOptions {
  /** Where the gateway's registry is mounted, such as `http://gateway:8080/gateway`. */
  readonly url: string
  readonly token: string
  /** For a whole exchange. Milliseconds; default 2000. */
  readonly timeoutMs?: number
  readonly fetch?: Fetch
  readonly clock?: Clock
}

/** The registry answered, but did not apply the batch. */
export class RegistryError extends Error {
  readonly code = 'GATEWAY_REGISTRY'
  readonly status: number
  /** The problem document's `reason`, if there is one. */
  readonly reason: string | null
  constructor(status: number, reason: string | null) {
    super(`The registry answered ${status}${reason === null ? '' : ` (${reason})`}`)
    this.name = 'RegistryError'
    this.status = status
    this.reason = reason
  }
}

const answerSchema: v.GenericSchema<unknown, EventsAnswer> = v.object({
  revision: v.number(),
  events: v.array(
    v.object({
      type: v.picklist(['register', 'heartbeat', 'draining', 'offline']),
      id: v.string(),
      draining: v.boolean(),
      active: v.number(),
    }),
  ),
})

/** Sends events to one registry, once each; `announceInstance` is what repeats and retries them (GWY-7). */
export class RegistryClient {
  readonly #url: string
  readonly #token: string
  readonly #timeoutMs: number
  readonly #fetch: Fetch
  readonly #clock: Clock

  /** @throws {TypeError} when `url` is not an absolute http or https URL, or no request can carry `token`. */
  constructor({ url, token, timeoutMs = 2000, fetch = hostFetch, clock = new SystemClock() }: RegistryClientOptions) {
    const { protocol } = new URL(url)
    if (protocol !== 'http:' && protocol !== 'https:') {
      throw new TypeError(`Cannot reach a registry by ${protocol} (use http or https)`)
    }
    if (!isBearerToken(token)) {
      throw new TypeError('Cannot reach a registry: its token is empty or no bearer token (RFC 6750)')
    }
    this.#url = url.replace(/\/+$/, '')
    this.#token = token
    this.#timeoutMs = timeoutMs
    this.#fetch = fetch
    this.#clock = clock
  }

  /**
   * Applies a batch, all or nothing.
   *
   * @throws {RegistryError} when the registry refused it.
   * @throws {DeadlineError} when there was no answer in time; whatever `fetch` throws passes through unchanged. In both
   * cases the batch may have been applied.
   */
  send(events: readonly UpstreamEvent[], signal?: AbortSignal): Promise<EventsAnswer> {
    const exchange = async (deadline: AbortSignal): Promise<EventsAnswer> => {
      const response = await this.#fetch(
        new Request(`${this.#url}/events`, {
          method: 'POST',
          headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
          body: JSON.stringify({ events }),
          redirect: 'manual',
          signal: deadline,
        }),
      )
      const text = await response.text()
      if (response.status !== 200) throw new RegistryError(response.status, reasonIn(text))
      return answerIn(text, response.status)
    }
    return within(this.#clock, this.#timeoutMs, exchange, signal)
  }
}

function answerIn(text: string, status: number): EventsAnswer {
  const answer = v.safeParse(v.pipe(v.string(), v.parseJson(), answerSchema), text)
  // Another server on that address, or a proxy's page: no registry has answered.
  if (!answer.success) throw new RegistryError(status, 'not_a_registry')
  return answer.output
}

function reasonIn(text: string): string | null {
  const problem = v.safeParse(v.pipe(v.string(), v.parseJson(), v.object({ reason: v.string() })), text)
  return problem.success ? problem.output.reason : null
}
