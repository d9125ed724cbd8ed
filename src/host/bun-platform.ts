import type { Clock } from '../clock.ts'
import type { Platform } from './shutdown.ts'
import { passTurns } from './turns.ts'

/** What is used of Bun's server. */
export interface BunServer {
  readonly hostname?: string | undefined
  readonly port?: number | undefined
  /** Requests whose response has not been sent in full. */
  readonly pendingRequests: number
  readonly pendingWebSockets: number
  stop(closeActiveConnections?: boolean): Promise<void>
}

/** Between two looks at what is pending; and for how many of them nothing must be. */
const LOOK_MS = 50
const QUIET_LOOKS = 5

/**
 * A Bun server on its way out.
 *
 * `stop()` alone may wait for ever for a socket that never said anything. So once nothing has been pending for a while,
 * which leaves time for a request that is just arriving, what is still open is closed.
 */
export class BunPlatform implements Platform {
  readonly #server: BunServer
  readonly #clock: Clock
  #quietLooks: number
  #cancelLook: () => void
  #isCut: boolean

  constructor(server: BunServer, clock: Clock) {
    this.#server = server
    this.#clock = clock
    this.#quietLooks = 0
    this.#cancelLook = () => undefined
    this.#isCut = false
  }

  async stop(): Promise<void> {
    await passTurns(this.#clock)
    if (this.#isCut) return
    this.#look()
    try {
      await this.#server.stop()
    } finally {
      this.#cancelLook()
    }
  }

  cut(): number {
    this.#isCut = true
    this.#cancelLook()
    const cut = this.#pending
    void this.#server.stop(true)
    return cut
  }

  get #pending(): number {
    return this.#server.pendingRequests + this.#server.pendingWebSockets
  }

  #look(): void {
    this.#quietLooks = this.#pending === 0 ? this.#quietLooks + 1 : 0
    if (this.#quietLooks > QUIET_LOOKS) void this.#server.stop(true)
    else this.#cancelLook = this.#clock.callAt(this.#clock.nowMs() + LOOK_MS, () => this.#look())
  }
}
