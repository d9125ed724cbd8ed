import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, Connection, get, post } from '../client.ts'

/** A request without a complete and correct answer. */
export interface Loss {
  readonly kind: string
  /** What came instead. */
  readonly what: string
  /** On the clock of `Date.now()`. */
  readonly sentAtMs: number
}

export interface Tally {
  readonly answered: number
  readonly lost: readonly Loss[]
  /** Connections that the other side ended, in whatever way. */
  readonly closed: number
  /** Of the answered, requests to `/upload`. */
  readonly uploads: number
}

interface Shot {
  readonly kind: string
  readonly bytes: string
  /** Written after a while, as the rest of a body that is streamed. */
  readonly rest?: readonly string[]
  readonly body: string
}

const FILLER = 'x'.repeat(1024)
const chunk = (data: string): string => `${data.length.toString(16)}\r\n${data}\r\n`

/** The requests of a lane, in turn: three quick ones, two uploads, a streamed upload, a streamed answer, a slow one. */
function shotOf(lane: number, n: number): Shot {
  const key = `${lane}-${n}`
  switch ((lane + n) % 8) {
    case 0:
    case 1:
      return { kind: 'upload', bytes: post('/upload', `${key} ${FILLER}`), body: `${key} ${FILLER}` }
    case 2: {
      const rest = [chunk('second '), `${chunk('third')}0\r\n\r\n`]
      const bytes = get('/upload', { 'Transfer-Encoding': 'chunked' }, 'POST') + chunk(`${key} first `)
      return { kind: 'streamed upload', bytes, rest, body: `${key} first second third` }
    }
    case 3:
      return { kind: 'stream', bytes: get(`/stream/${key}`), body: `${key} `.repeat(5) }
    case 4:
      return { kind: 'slow', bytes: get(`/slow/${key}?ms=${50 + ((lane * 7 + n * 13) % 250)}`), body: key }
    default:
      return { kind: 'quick', bytes: get(`/quick/${key}`), body: key }
  }
}

/** Lanes that send one request after the other to one port, over kept connections, until they are told to stop. */
export class Load {
  #isOver: boolean
  #answered: number
  #uploads: number
  #closed: number
  readonly #lost: Loss[]
  readonly #lanes: readonly Promise<void>[]

  /** `pauseMs`: what a lane waits between an answer and its next request. */
  constructor(port: number, lanes: number, pauseMs: number) {
    this.#isOver = false
    this.#answered = 0
    this.#uploads = 0
    this.#closed = 0
    this.#lost = []
    this.#lanes = Array.from({ length: lanes }, (_, lane) => this.#run(port, lane, pauseMs))
  }

  /** Requests answered in full and correctly so far. */
  get answered(): number {
    return this.#answered
  }

  get lost(): readonly Loss[] {
    return this.#lost
  }

  /** Ends the lanes, each with its current request. */
  async stop(): Promise<Tally> {
    this.#isOver = true
    await Promise.all(this.#lanes)
    return { answered: this.#answered, lost: this.#lost, closed: this.#closed, uploads: this.#uploads }
  }

  async #run(port: number, lane: number, pauseMs: number): Promise<void> {
    let connection = new Connection(port)
    for (let n = 0; !this.#isOver; n += 1) {
      if (pauseMs > 0) await sleep(n === 0 ? Math.random() * pauseMs : pauseMs)
      if (connection.isOver) {
        this.#closed += 1
        connection = new Connection(port)
      }
      const { kind, bytes, rest = [], body } = shotOf(lane, n)
      const sentAtMs = Date.now()
      const sent = connection.send(bytes)
      for (const part of rest) {
        await sleep(5)
        connection.write(part)
      }
      const answer = await sent
      if (answer?.status === 200 && answer.isComplete && answer.body === body) {
        this.#answered += 1
        if (kind.endsWith('upload')) this.#uploads += 1
      } else this.#lost.push({ kind, what: describe(answer), sentAtMs })
      // After an answer that came before the body was sent in full the connection means nothing any more.
      if (rest.length > 0 && answer?.status !== 200) {
        connection.fin()
        connection = new Connection(port)
      }
    }
    connection.fin()
  }
}

function describe(answer: Answer | undefined): string {
  if (answer === undefined) return 'connection ended without an answer'
  const { status, isComplete, body } = answer
  return `${status}${isComplete ? '' : ' cut'} ${body.slice(0, 200)}`
}

/** How often each kind of loss is in there. */
export function summarize(lost: readonly Loss[]): { readonly [what: string]: number } {
  const counts: { [what: string]: number } = {}
  for (const { kind, what } of lost) {
    const line = `${kind}: ${what.slice(0, 60)}`
    counts[line] = (counts[line] ?? 0) + 1
  }
  return counts
}
