import { Server as HttpServer, type IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import type { Http2Bindings, HttpBindings, ServerType } from '@hono/node-server'
import type { Clock } from '../clock.ts'
import type { Platform } from './shutdown.ts'
import { passTurns } from './turns.ts'

/** Between two sweeps of idle sockets. Milliseconds. */
const SWEEP_MS = 50

/**
 * A Node server on its way out.
 *
 * `close()` alone waits for ever: for sockets that become idle after it, that never said anything, or that were upgraded.
 * It also destroys sockets that are still sending a response which the app has finished with. So every socket is known;
 * nothing is closed while one has bytes to send, and then idle ones are swept until none is left.
 */
export class NodePlatform implements Platform {
  readonly #server: ServerType
  readonly #clock: Clock
  readonly #sockets: Set<Socket>
  readonly #sessions: Set<ServerHttp2Session>
  #onClosed: (() => void) | undefined // set: `close()` is still to be called
  #cancelSweep: () => void
  #isCut: boolean

  constructor(server: ServerType, clock: Clock) {
    this.#server = server
    this.#clock = clock
    this.#sockets = new Set()
    this.#sessions = new Set()
    this.#onClosed = undefined
    this.#cancelSweep = () => undefined
    this.#isCut = false
    // Below TLS a socket does not know what is still to be sent.
    server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    server.on('session', (session: ServerHttp2Session) => {
      this.#sessions.add(session)
      session.once('close', () => this.#sessions.delete(session))
    })
  }

  async stop(): Promise<void> {
    await passTurns(this.#clock)
    if (this.#isCut) return
    await new Promise<void>((resolve) => {
      this.#onClosed = () => {
        this.#cancelSweep()
        resolve()
      }
      for (const session of this.#sessions) session.close()
      this.#sweep()
    })
  }

  cut(): number {
    this.#isCut = true
    this.#cancelSweep()
    let cut = 0
    for (const socket of this.#sockets) {
      if (socket.writableLength === 0) continue
      cut += 1
      socket.destroy()
    }
    this.#server.close() // closes the idle ones, which are none of those that are cut
    for (const socket of this.#sockets) {
      if (socket.destroyed) continue
      if (!this.#isSilent(socket)) cut += 1
      socket.destroy()
    }
    return cut
  }

  #sweep(): void {
    if (this.#isSending) {
      // Also once the server is closing: a response may end just now.
    } else if (this.#onClosed !== undefined) {
      this.#server.close(this.#onClosed)
      this.#onClosed = undefined
    } else {
      if ('closeIdleConnections' in this.#server) this.#server.closeIdleConnections()
      // Those that said nothing have been spared so far, for what they said might be on its way to us.
      for (const socket of this.#sockets) if (this.#isSilent(socket)) socket.destroy()
    }
    this.#cancelSweep = this.#clock.callAt(this.#clock.nowMs() + SWEEP_MS, () => this.#sweep())
  }

  get #isSending(): boolean {
    for (const socket of this.#sockets) if (socket.writableLength > 0) return true
    return false
  }

  /** Has nothing been received? To Node such a socket is no idle one. Behind TLS it is never certain. */
  #isSilent(socket: Socket): boolean {
    return this.#server instanceof HttpServer && socket.bytesRead === 0
  }
}

/**
 * Asks the client to leave the connection with this answer (RUN-5). Not where some of the request is still to come: the
 * answer could be lost. HTTP/2 has its own way, and for an upgrade there is no response yet.
 */
export function askToLeave<A extends Response | Promise<Response>>(
  { incoming, outgoing }: HttpBindings | Http2Bindings,
  answer: A,
): A | Promise<Response> {
  if (!(outgoing instanceof ServerResponse)) return answer
  if (hasBody(incoming.headers)) return askOnceReceived(incoming, outgoing, answer)
  sayClose(outgoing)
  return answer
}

async function askOnceReceived(
  incoming: { readonly complete: boolean },
  outgoing: ServerResponse,
  answer: Response | Promise<Response>,
): Promise<Response> {
  const response = await answer
  if (incoming.complete) sayClose(outgoing)
  return response
}

function sayClose(outgoing: ServerResponse): void {
  if (!outgoing.headersSent) outgoing.setHeader('Connection', 'close')
}

function hasBody(headers: IncomingHttpHeaders): boolean {
  return 'transfer-encoding' in headers || (headers['content-length'] ?? '0') !== '0'
}
