import type { Clock } from '../clock.ts'
import type { Platform } from './shutdown.ts'
import { passTurns } from './turns.ts'

/** What `Deno.serve` passes along with a request. */
export interface DenoRequestInfo {
  readonly remoteAddr: object
  /** Resolves when the response has been handed over in full; rejects when it could not be. */
  readonly completed: Promise<void>
}

/** What is used of Deno's `HttpServer`. */
export interface DenoHttpServer {
  readonly addr: { readonly hostname: string; readonly port: number }
  readonly finished: Promise<void>
  shutdown(): Promise<void>
}

type Handler = (request: Request, info: DenoRequestInfo) => Response | Promise<Response>

/**
 * A Deno server on its way out.
 *
 * Once `shutdown()` has been called nothing can be cut any more: to abort then brings the process down. So it is called
 * only when every response that was open before has been sent, and the cut before that is an abort.
 */
export class DenoPlatform implements Platform {
  readonly #clock: Clock
  readonly #aborter: AbortController
  #server: DenoHttpServer | undefined
  #open: OpenResponses
  #before: OpenResponses // those that `stop` waits for
  #isShuttingDown: boolean

  constructor(clock: Clock) {
    this.#clock = clock
    this.#aborter = new AbortController()
    this.#server = undefined
    this.#open = new OpenResponses()
    this.#before = new OpenResponses()
    this.#isShuttingDown = false
  }

  /** For the option of that name of `Deno.serve`. */
  get signal(): AbortSignal {
    return this.#aborter.signal
  }

  set server(server: DenoHttpServer) {
    this.#server = server
  }

  /** The handler; its responses are counted until they have been sent. */
  counted(handler: Handler): Handler {
    return (request, info) => {
      this.#open.add(info.completed)
      return handler(request, info)
    }
  }

  async stop(): Promise<void> {
    await passTurns(this.#clock)
    this.#before = this.#open
    // Probes and refusals that come in meanwhile must not put it off.
    this.#open = new OpenResponses()
    await this.#before.ended()
    if (this.#aborter.signal.aborted) return
    this.#isShuttingDown = true
    await this.#server?.shutdown()
  }

  cut(): number {
    if (!this.#isShuttingDown) this.#aborter.abort()
    return this.#before.count + this.#open.count
  }
}

/** Responses that have not been sent in full. */
class OpenResponses {
  count: number
  readonly #sent: () => void
  #onEnd: (() => void) | undefined

  constructor() {
    this.count = 0
    this.#sent = () => {
      this.count -= 1
      if (this.count === 0) this.#onEnd?.()
    }
    this.#onEnd = undefined
  }

  add(completed: Promise<void>): void {
    this.count += 1
    completed.then(this.#sent, this.#sent)
  }

  /** Resolves when none is open; nothing may be added any more. */
  ended(): Promise<void> {
    return new Promise((resolve) => {
      if (this.count === 0) resolve()
      else this.#onEnd = resolve
    })
  }
}
