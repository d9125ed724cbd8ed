/**
 * What the process that measures asks the server and the generator, and what they answer: one line of JSON each, over
 * their standard input and output. A program ends when its input does, so none outlives whoever started it.
 */

export interface Exchange<Asked, Answered> {
  readonly asked: Asked
  readonly answered: Answered
}

/** An application that listens on a port of its own. */
export interface Address {
  readonly port: number
  readonly path: string
  /** What a request that is let in is answered, with 200. */
  readonly body: string
}

export interface ServerGreeting {
  readonly apps: { readonly [name: string]: Address }
}

export interface ServerProtocol {
  /** Processor time of the whole process so far. */
  readonly cpu: Exchange<null, { readonly cpuMs: number }>
  readonly counts: Exchange<{ readonly app: string }, AppCounts>
  /** Publishes a whole configuration in which ten rules are changed. */
  readonly update: Exchange<null, UpdateReport>
  /** Watches the event loop as an update does, and updates nothing. */
  readonly watch: Exchange<{ readonly forMs: number }, { readonly blockMs: number }>
}

export interface AppCounts {
  /** The most handlers that ran at once since this was last asked; null: the handler does not count. */
  readonly mostRunning: number | null
  /** Calls that admission has let in since the start; null: there is none. */
  readonly admitted: number | null
}

export interface UpdateReport {
  /** Rules that the update has changed. */
  readonly changed: number
  readonly tookMs: number
  /** How long the event loop could not turn meanwhile, at the longest. */
  readonly blockMs: number
}

export interface GeneratorProtocol {
  /** Processor time of everything on the machine so far. */
  readonly machine: Exchange<null, { readonly cpuMs: number }>
  /** Opens connections that the next window finds idle. */
  readonly connect: Exchange<{ readonly port: number; readonly connections: number }, null>
  readonly disconnect: Exchange<{ readonly port: number }, null>
  readonly closed: Exchange<ClosedLoop, Outcome>
  readonly open: Exchange<OpenLoop, Outcome>
}

/** Each connection sends its next request when it has the answer to the last one. */
export interface ClosedLoop {
  readonly to: Address
  readonly connections: number
  readonly forMs: number
}

/** Requests are sent when they are due, whatever has become of those before them. */
export interface OpenLoop {
  readonly to: Address
  readonly requestsPerS: number
  /** At the start, requests that are sent and not counted. */
  readonly leadMs: number
  readonly forMs: number
  /** A request that is due when all of so many wait for an answer is lost. */
  readonly maxConnections: number
  /** An answer is good up to this long after its request was due. */
  readonly goodWithinMs: number
}

export interface Outcome {
  readonly sent: number
  readonly admitted: number
  /** Of those admitted, answered in time. */
  readonly good: number
  readonly refused: number
  /** Refusals by their reasons. */
  readonly reasons: { readonly [reason: string]: number }
  /** Requests that found no connection. */
  readonly lost: number
  /** Answers that nobody expects, or none; and what was wrong with the first of them. */
  readonly wrong: number
  readonly firstWrong: string | null
  /** From when a request was due until the last byte of its answer was there. */
  readonly admittedMs: Percentiles
  readonly refusedMs: Percentiles
  /** How much later than due requests were sent: what the generator adds to all of these times. */
  readonly lateMs: Percentiles
  /** From the first request until the last answer. */
  readonly elapsedMs: number
  /** Processor time meanwhile: of the generator, and of everything on the machine. */
  readonly cpuMs: number
  readonly machineCpuMs: number
}

/** NaN, which is null on the way, without any. */
export interface Percentiles {
  readonly p50: number | null
  readonly p99: number | null
  readonly max: number | null
}
