/** What the handlers have seen, as JSON. */
export interface Counts {
  /** In handlers now, and the most there ever were at once. */
  running: number
  mostRunning: number
  started: number
  finished: number
  /** Handlers that started while more were running than the limit allows, and while exactly as many were. */
  violations: number
  atTheLimit: number
  /** Requests whose signal told of an abort. */
  aborts: number
  /** Sources of streamed bodies: begun, read to their end, cancelled, and what readers took of them. */
  sources: number
  ended: number
  cancelled: number
  takenBytes: number
  /** Bodies of requests, as their handlers read them. */
  bodies: string[]
  /** Errors that reached the application's error handler, and the hook for what runs in the background. */
  errors: number
  backgroundErrors: string[]
}

/** Counts of one server process. A handler counts in what it found when it started, so a reset starts from zero. */
export class Probe {
  counts: Counts

  constructor() {
    this.counts = none()
  }

  reset(): void {
    this.counts = none()
  }
}

function none(): Counts {
  return {
    running: 0,
    mostRunning: 0,
    started: 0,
    finished: 0,
    violations: 0,
    atTheLimit: 0,
    aborts: 0,
    sources: 0,
    ended: 0,
    cancelled: 0,
    takenBytes: 0,
    bodies: [],
    errors: 0,
    backgroundErrors: [],
  }
}
