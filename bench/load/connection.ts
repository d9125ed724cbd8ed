import { Buffer } from 'node:buffer'
import { connect, type Socket } from 'node:net'

/** One answer as it came over the wire. */
export interface Answer {
  readonly status: number
  readonly head: string
  readonly body: string
}

/** Told of the answer; undefined when the connection has ended without one. */
export type OnAnswer = (answer: Answer | undefined) => void

const BUFFER_BYTES = 4096
const BACKLOG = 64 // connections that a server may be asked for at once; the kernel drops what is more than it holds

/**
 * A connection that is kept alive, with at most one request under way. Knows as much of HTTP as the servers here speak:
 * every answer declares its length. Reads into a buffer of its own, because what the generator needs of the processor
 * is not there for the server.
 */
export class Connection {
  readonly #socket: Socket
  #received: string
  #onAnswer: OnAnswer | undefined
  isOver: boolean

  constructor(port: number) {
    this.#received = ''
    this.#onAnswer = undefined
    this.isOver = false
    const buffer = Buffer.allocUnsafe(BUFFER_BYTES)
    const callback = (length: number): boolean => {
      this.#take(buffer.toString('latin1', 0, length))
      return true
    }
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true, onread: { buffer, callback } })
    const over = (): void => {
      this.isOver = true
      this.#deliver(undefined)
    }
    this.#socket.on('error', over)
    this.#socket.on('end', over)
    this.#socket.on('close', over)
  }

  get connected(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.once('connect', resolve)
      this.#socket.once('error', reject)
    })
  }

  send(request: string, onAnswer: OnAnswer): void {
    this.#onAnswer = onAnswer
    if (this.isOver) this.#deliver(undefined)
    else this.#socket.write(request, 'latin1')
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(text: string): void {
    const received = this.#received === '' ? text : this.#received + text
    this.#received = received
    const headEnd = received.indexOf('\r\n\r\n')
    if (headEnd < 0) return
    const head = received.slice(0, headEnd)
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    // Without a length it is told as it is, and will be wrong.
    if (length !== undefined && received.length < headEnd + 4 + Number(length)) return
    this.#received = ''
    this.#deliver({ status: Number(head.slice(9, 12)), head, body: received.slice(headEnd + 4) })
  }

  #deliver(answer: Answer | undefined): void {
    const onAnswer = this.#onAnswer
    this.#onAnswer = undefined
    onAnswer?.(answer)
  }
}

/** The connections to one port: as many as are needed at once, and no more. */
export class Pool {
  readonly #port: number
  readonly #idle: Connection[]
  readonly #all: Set<Connection>

  constructor(port: number) {
    this.#port = port
    this.#idle = []
    this.#all = new Set()
  }

  /** Opens what is missing of so many idle ones. */
  async connect(connections: number): Promise<void> {
    for (let left = connections - this.#idle.length; left > 0; left -= BACKLOG) {
      const opened = Array.from({ length: Math.min(left, BACKLOG) }, () => this.#open())
      await Promise.all(opened.map(({ connected }) => connected))
      this.#idle.push(...opened)
    }
  }

  /** The one that was used last, so that few are in use; undefined when `max` are under way. */
  take(max: number): Connection | undefined {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (!idle.isOver) return idle
      this.#all.delete(idle)
    }
    return this.#all.size < max ? this.#open() : undefined
  }

  give(connection: Connection): void {
    if (connection.isOver) this.#all.delete(connection)
    else this.#idle.push(connection)
  }

  close(): void {
    for (const connection of this.#all) connection.close()
    this.#all.clear()
    this.#idle.length = 0
  }

  #open(): Connection {
    const connection = new Connection(this.#port)
    this.#all.add(connection)
    return connection
  }
}
