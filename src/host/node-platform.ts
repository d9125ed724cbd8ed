import { Server as HttpServer, type IncomingMessage } from 'node:http'
import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { Http2Bindings, HttpBindings, ServerType } from '@hono/node-server'
import type { Clock } from '../clock.ts'
import type { Platform } from './shutdown.ts'

/** Between two sweeps of idle sockets. Milliseconds. */
const SWEEP_MS = 50

/**
 * A Node server on its way out.
 *
 * `close()` alone waits for ever: it closes the sockets that are idle at that moment, but not those that become idle
 * later, nor those that never said anything, nor upgraded ones. So idle sockets are swept until none is left, and every
 * socket is known, for the cut.
 */
export class NodePlatform implements Platform {
  readonly #server: ServerType
  readonly #clock: Clock
  readonly #sockets: Set<Socket>
  readonly #sessions: Set<ServerHttp2Session>
  #sweeps: number
  #cancelSweep: () => void

  constructor(server: ServerType, clock: Clock) {
    this.#server = server
    this.#clock = clock
    this.#sockets = new Set()
    this.#sessions = new Set()
    this.#sweeps = 0
    this.#cancelSweep = () => undefined
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    if (!('closeIdleConnections' in server)) {
      server.on('session', (session: ServerHttp2Session) => {
        this.#sessions.add(session)
        session.once('close', () => this.#sessions.delete(session))
      })
    }
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => {
        this.#cancelSweep()
        resolve()
      })
      for (const session of this.#sessions) session.close()
      this.#sweep()
    })
  }

  cut(): number {
    this.#cancelSweep()
    this.#server.close()
    this.#closeIdle()
    let cut = 0
    for (const socket of this.#sockets) {
      if (socket.destroyed) continue
      if (!this.#isSilent(socket)) cut += 1
      socket.destroy()
    }
    return cut
  }

  #sweep(): void {
    this.#closeIdle()
    // Those that have said nothing are spared once, for what they said may be on its way to us.
    if (this.#sweeps > 0) {
      for (const socket of this.#sockets) if (this.#isSilent(socket)) socket.destroy()
    }
    this.#sweeps += 1
    this.#cancelSweep = this.#clock.callAt(this.#clock.nowMs() + SWEEP_MS, () => this.#sweep())
  }

  #closeIdle(): void {
    if ('closeIdleConnections' in this.#server) this.#server.closeIdleConnections()
  }

  /** Has nothing been received? To Node such a socket is no idle one. Below TLS the socket itself does not know. */
  #isSilent(socket: Socket): boolean {
    return this.#server instanceof HttpServer && socket.bytesRead === 0
  }
}

/**
 * Asks the client to leave the connection with this response. Not where the request has a body, which may be unread: the
 * answer could be lost (RUN-5). HTTP/2 has its own way.
 */
export function sayClose({ incoming, outgoing }: HttpBindings | Http2Bindings): void {
  if (incoming.httpVersionMajor === 1 && 'shouldKeepAlive' in outgoing && !hasBody(incoming.headers)) {
    outgoing.setHeader('Connection', 'close')
  }
}

function hasBody(headers: IncomingMessage['headers']): boolean {
  return 'transfer-encoding' in headers || (headers['content-length'] ?? '0') !== '0'
}
