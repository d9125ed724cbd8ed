import { connect, type Socket } from 'node:net'

/** One response as it came over the wire. */
export interface Answer {
  readonly status: number
  /** Status line and fields, as sent. */
  readonly head: string
  readonly body: string
  readonly bodyBytes: number
  /** False: the connection ended before the declared end of the body. */
  readonly isComplete: boolean
}

/** One of these at the end of every answer; a connection answers its requests in order. */
interface Expected {
  readonly isHead: boolean
  readonly resolve: (answer: Answer | undefined) => void
}

const HEAD_END = Buffer.from('\r\n\r\n')
/** More than this of a body is counted, and not kept. */
const KEPT_BYTES = 2 * 1_048_576

/**
 * A connection over which requests go out as raw bytes, and answers are told as soon as their last byte is here: the
 * next request can be on its way before the server has done anything more.
 */
export class Connection {
  readonly socket: Socket
  readonly #expected: Expected[]
  #rest: Buffer
  #head: string // '' while the head is incomplete
  #status: number
  #left: number // bytes of the body or chunk; Infinity: until the end of the connection
  #isChunked: boolean
  #inChunk: boolean
  #kept: string
  #bodyBytes: number
  /** Is the connection of no use any more? */
  isOver: boolean
  /** Resolves when the connection is of no use any more, whoever ended it. */
  readonly closed: Promise<void>

  constructor(port: number) {
    this.socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true })
    this.#expected = []
    this.#rest = Buffer.alloc(0)
    this.#head = ''
    this.#status = 0
    this.#left = 0
    this.#isChunked = false
    this.#inChunk = false
    this.#kept = ''
    this.#bodyBytes = 0
    this.isOver = false
    this.closed = new Promise((resolve) => {
      const over = (): void => {
        if (!this.isOver) {
          this.isOver = true
          this.#finish()
          this.socket.end()
        }
        resolve()
      }
      this.socket.on('end', over)
      this.socket.on('close', over)
      this.socket.on('error', over)
    })
    this.socket.on('data', (data) => this.#take(data))
  }

  /** Sends bytes as they are, perhaps none, and waits for one answer; undefined when the connection ended without one. */
  send(bytes: string | Uint8Array): Promise<Answer | undefined> {
    if (this.isOver) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      const isHead = Buffer.from(bytes.slice(0, 5)).toString() === 'HEAD '
      this.#expected.push({ isHead, resolve })
      if (bytes.length > 0) this.socket.write(bytes)
    })
  }

  /** Sends bytes that no answer of their own belongs to. */
  write(bytes: string | Uint8Array): void {
    if (!this.isOver) this.socket.write(bytes)
  }

  /** An orderly end in both directions. */
  fin(): void {
    this.socket.destroy()
  }

  /** A reset, as of a client that crashed. */
  reset(): void {
    this.socket.resetAndDestroy()
  }

  /** Sends nothing more, and still reads. */
  halfClose(): void {
    this.socket.end()
  }

  #take(data: Buffer): void {
    let at = 0
    let bytes = this.#rest.length === 0 ? data : Buffer.concat([this.#rest, data])
    this.#rest = bytes.subarray(bytes.length)
    for (;;) {
      if (this.#head === '') {
        const end = bytes.indexOf(HEAD_END, at)
        if (end < 0) break
        const head = bytes.toString('latin1', at, end)
        at = end + 4
        const status = Number(head.slice(9, 12))
        if (status < 200 && status !== 101) continue // 100 Continue
        this.#begin(head, status)
        if (this.#left === 0 && !this.#isChunked) this.#complete()
        continue
      }
      if (this.#isChunked && !this.#inChunk) {
        const end = bytes.indexOf('\r\n', at)
        if (end < 0) break
        const size = Number.parseInt(bytes.toString('latin1', at, end), 16)
        if (size === 0) {
          if (bytes.length < end + 4) break
          at = end + 4
          this.#complete()
          continue
        }
        at = end + 2
        this.#left = size + 2
        this.#inChunk = true
      }
      if (at === bytes.length) break
      const part = bytes.subarray(at, at + Math.min(this.#left, bytes.length - at))
      at += part.length
      this.#left -= part.length
      // The line break after a chunk is no part of the body.
      const body = this.#isChunked ? part.subarray(0, Math.max(0, part.length - Math.max(0, 2 - this.#left))) : part
      this.#bodyBytes += body.length
      if (this.#bodyBytes <= KEPT_BYTES) this.#kept += body.toString('latin1')
      if (this.#left > 0) break
      if (this.#isChunked) this.#inChunk = false
      else this.#complete()
    }
    if (at < bytes.length) this.#rest = bytes.subarray(at)
    bytes = this.#rest
  }

  #begin(head: string, status: number): void {
    this.#head = head
    this.#status = status
    this.#kept = ''
    this.#bodyBytes = 0
    this.#inChunk = false
    this.#isChunked = false
    this.#left = Number.POSITIVE_INFINITY
    const declared = /\r\ncontent-length: *(\d+)/i.exec(head)
    if (this.#expected[0]?.isHead === true || status === 204 || status === 304 || status === 101) this.#left = 0
    else if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
      this.#isChunked = true
      this.#left = 0
    } else if (declared !== null) this.#left = Number(declared[1])
  }

  #complete(isComplete = true): void {
    const answer = {
      status: this.#status,
      head: this.#head,
      body: this.#kept,
      bodyBytes: this.#bodyBytes,
      isComplete,
    }
    this.#head = ''
    this.#expected.shift()?.resolve(answer)
  }

  /** The connection is over: what is begun is incomplete, unless only its end was missing. */
  #finish(): void {
    if (this.#head !== '') this.#complete(this.#left === Number.POSITIVE_INFINITY)
    for (const { resolve } of this.#expected.splice(0)) resolve(undefined)
  }
}

/** A request without a body, as bytes. */
export function get(path: string, fields: { readonly [name: string]: string } = {}, method = 'GET'): string {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${lines.join('')}\r\n`
}

/** A request with a body, as bytes. */
export function post(path: string, body: string, fields: { readonly [name: string]: string } = {}): string {
  return get(path, { 'Content-Length': `${body.length}`, ...fields }, 'POST') + body
}

/** A field of an answer; undefined when it is not there. */
export function fieldOf({ head }: Answer, name: string): string | undefined {
  return new RegExp(`\\r\\n${name}: *([^\\r]*)`, 'i').exec(head)?.[1]
}

/** One request on a connection of its own. */
export async function once(port: number, bytes: string | Uint8Array): Promise<Answer | undefined> {
  const connection = new Connection(port)
  const answer = await connection.send(bytes)
  connection.fin()
  return answer
}

/** What strictly sequential lanes got, over all of them. */
export interface Tally {
  readonly statuses: ReadonlyMap<number, number>
  /** Requests whose connection ended before a complete answer. */
  readonly brokenOff: number
}

/** `lanes` connections, each sending `requests` requests, the next one as soon as the last byte of an answer is here. */
export async function runLanes(port: number, lanes: number, requests: number, bytes: string): Promise<Tally> {
  const statuses = new Map<number, number>()
  let brokenOff = 0
  const lane = async (): Promise<void> => {
    let connection = new Connection(port)
    for (let sent = 0; sent < requests; sent += 1) {
      if (connection.isOver) connection = new Connection(port)
      const answer = await connection.send(bytes)
      if (answer?.isComplete !== true) brokenOff += 1
      else statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
    }
    connection.fin()
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return { statuses, brokenOff }
}
