/** How far a server is on its way out. */
export type Phase = 'serving' | 'announcing' | 'finishing' | 'closing' | 'stopped'

/** Calls that run, and calls that wait. */
export interface CallCounts {
  readonly active: number
  readonly queued: number
}

/** What became of everything, once; plain and JSON-ready, for the log. */
export interface ShutdownReport {
  /** What began it: the name of the signal, or `shutdown`. */
  readonly reason: string
  /** `drained`: nothing was lost. `cut`: the deadline ended something. `forced`: a second signal did. */
  readonly outcome: 'drained' | 'cut' | 'forced'
  /** What the process should end with: 0 when drained. */
  readonly exitCode: 0 | 1
  /** Calls in hand when readiness went off. */
  readonly atSignal: CallCounts
  /** Calls in hand when new ones began to be refused. */
  readonly atSeal: CallCounts
  /** Of those in hand at the seal, the calls that ended by themselves. */
  readonly finished: number
  /** New calls that were refused because of all this; many of them mean that `announceMs` is too short. */
  readonly refused: number
  /**
   * What was ended: handlers still running, waiters refused, and requests or connections that the server still had open.
   * An active call usually shows as a socket, too.
   */
  readonly cut: CallCounts & { readonly sockets: number }
  /** How long each phase took; 0 for one that was left out. Whole milliseconds. */
  readonly phases: { readonly announcingMs: number; readonly finishingMs: number; readonly closingMs: number }
  readonly totalMs: number
  /** What went wrong on the way, such as a gateway that could not be told; none of it held anything up. */
  readonly errors: readonly string[]
}
