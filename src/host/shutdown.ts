import type { AdmissionCore } from '../admission-core.ts'
import type { Clock } from '../clock.ts'
import { quietly } from '../quietly.ts'
import { ShutdownLog } from './shutdown-log.ts'
import type { CallCounts, Phase, ShutdownReport } from './shutdown-report.ts'
import { TURNS } from './turns.ts'
import { completeWindows, type PartialWindows, type Windows } from './windows.ts'

/** The server of one runtime, as far as its end goes. */
export interface Platform {
  /**
   * Takes no new connections; resolves when every response has been sent. Called at most once, and only when no call
   * runs: earlier it breaks uploads on Deno and strands busy sockets on Node (DRN-5).
   */
  stop(): Promise<void>
  /** Ends at once whatever is open, with or without `stop()` before. How many requests or connections that hit. */
  cut(): number
}

/** Tells gateways about this instance (GWY-7); what `announceInstance` makes is one. */
export interface Announcer {
  start(): unknown
  draining(reason?: string): unknown
  offline(): unknown
}

export interface ShutdownParts {
  readonly core: AdmissionCore
  readonly platform: Platform
  readonly clock: Clock
  readonly windows: Windows
  readonly announcer?: Announcer | undefined
  /** Called as each phase begins. */
  readonly onPhase?: ((phase: Phase) => void) | undefined
  readonly onReport?: ((report: ShutdownReport) => void) | undefined
}

/**
 * The way out of one server, without a line of platform code (DRN-5).
 *
 * ```
 *   serving ─begin()─▶ announcing ─sealBy─▶ finishing ─idle, or finishBy─▶ closing ─closed─▶ stopped
 *            #announce      │        #seal      │            #close           │      #end       ▲
 *                           └──────force()──────┴──────────force()────────────┴─force(), ───────┘
 *                                                                               deadline   #cut
 *   announcing   readiness off, calls admitted, gateways told and waited for; no time when draining or stopped already
 *   finishing    calls are refused (`draining`); what runs and waits goes on until nothing does
 *   closing      the core is stopped, waiters left over are refused (`stopped`); once nothing runs the platform stops
 * ```
 *
 * The three instants are fixed when it begins: a phase that ends early leaves its time to the next ones. Beginning again
 * can only bring them nearer (DRN-7). Neither the announcer nor a hook moves them: what they throw is written down.
 * Calls are not refused before the announcer has answered, for until then a gateway may go on sending them (GWY-7); that
 * takes its time from finishing. An answer that never comes is waited for until the end of that, and in closing until
 * the deadline.
 */
export class Shutdown {
  /** Resolves at the end; never rejects. */
  readonly stopped: Promise<ShutdownReport>
  readonly #parts: ShutdownParts
  readonly #log: ShutdownLog
  #resolve: (report: ShutdownReport) => void
  #phase: Phase
  // Instants on the parts' clock; Infinity: not begun.
  #sealByMs: number
  #finishByMs: number
  #deadlineMs: number
  #turnsLeft: number // of the event loop, between the end of the announcement and the seal
  #isStopping: boolean // the platform has been told to stop
  #isClosed: boolean // and has
  #isTold: boolean // the announcer has told gateways to turn away, or there is nothing to wait for
  #isOffline: boolean // the announcer has said so, or there is none
  #cancelTimer: () => void

  constructor(parts: ShutdownParts) {
    this.#parts = parts
    this.#log = new ShutdownLog(parts.core)
    this.#resolve = () => undefined
    this.stopped = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.#phase = 'serving'
    this.#sealByMs = Number.POSITIVE_INFINITY
    this.#finishByMs = Number.POSITIVE_INFINITY
    this.#deadlineMs = Number.POSITIVE_INFINITY
    this.#turnsLeft = 0
    this.#isStopping = false
    this.#isClosed = false
    this.#isTold = parts.announcer === undefined
    this.#isOffline = parts.announcer === undefined
    this.#cancelTimer = () => undefined
  }

  get phase(): Phase {
    return this.#phase
  }

  /**
   * Begins the way out; again: joins it, and can only shorten it. Windows left out are those of the parts.
   *
   * @throws {RangeError} when a window is no time that a timer can keep.
   */
  begin(reason: string, windows: PartialWindows = {}): Promise<ShutdownReport> {
    const { announceMs, finishMs, closeMs } = completeWindows(windows, this.#parts.windows)
    if (this.#phase === 'stopped') return this.stopped
    const nowMs = this.#parts.clock.nowMs()
    this.#sealByMs = Math.min(this.#sealByMs, nowMs + announceMs)
    this.#finishByMs = Math.min(this.#finishByMs, nowMs + announceMs + finishMs)
    this.#deadlineMs = Math.min(this.#deadlineMs, nowMs + announceMs + finishMs + closeMs)
    if (this.#phase === 'serving') this.#announce(reason, nowMs)
    this.#advance()
    return this.stopped
  }

  /** Waits for nothing any more. There is nothing to force before {@link begin}. */
  force(): void {
    if (this.#phase !== 'serving' && this.#phase !== 'stopped') this.#cut(true)
  }

  /** Takes each arrow that time has made due, and sets the timer for the next. */
  #advance(): void {
    const { clock } = this.#parts
    const nowMs = clock.nowMs()
    if (this.#phase === 'announcing' && nowMs >= this.#sealDueMs()) {
      // A request that came in time is admitted, though the timer was faster than whoever reads it.
      if (this.#turnsLeft === 0 || nowMs >= this.#finishByMs) this.#seal(nowMs)
      else this.#turnsLeft -= 1
    }
    if (this.#phase === 'finishing' && nowMs >= this.#finishByMs) this.#close(nowMs)
    if (this.#phase === 'closing' && nowMs >= this.#deadlineMs) this.#cut(false)
    this.#cancelTimer()
    if (this.#phase === 'serving' || this.#phase === 'stopped') return
    const dueMs = { announcing: this.#sealDueMs(), finishing: this.#finishByMs, closing: this.#deadlineMs }[this.#phase]
    this.#cancelTimer = clock.callAt(dueMs, () => this.#advance())
  }

  #sealDueMs(): number {
    return this.#isTold ? this.#sealByMs : this.#finishByMs
  }

  #announce(reason: string, nowMs: number): void {
    const { core, announcer } = this.#parts
    this.#phase = 'announcing'
    this.#log.began(reason, nowMs)
    // Gateways first: they should know before anybody is refused (GWY-7).
    if (announcer !== undefined) void this.#sayDraining(announcer, reason)
    const { draining, announcing } = core.snapshot()
    // Joins a drain that refuses calls already: there is nothing left to announce.
    if (core.state === 'stopped' || (draining && !announcing)) {
      this.#sealByMs = nowMs
      this.#isTold = true
    } else if (this.#sealDueMs() > nowMs) {
      this.#turnsLeft = TURNS
      // Longer than it takes: it is here that the core is sealed.
      core.drain({ announceMs: this.#deadlineMs - nowMs, who: reason })
    }
    this.#tell('announcing')
  }

  async #sayDraining(announcer: Announcer, reason: string): Promise<void> {
    await this.#attempt('Telling gateways to turn away', () => announcer.draining(reason))
    this.#isTold = true
    this.#advance()
  }

  #seal(nowMs: number): void {
    this.#phase = 'finishing'
    this.#sealCore()
    this.#log.sealed(nowMs)
    this.#tell('finishing')
    this.#awaitIdle()
  }

  /** Also against a `resume()` since: this process ends, whoever hoped otherwise. */
  #sealCore(): void {
    const { core } = this.#parts
    if (core.state !== 'stopped') core.drain({ who: this.#log.reason })
  }

  #awaitIdle(): void {
    void this.#parts.core.whenIdle().then(() => this.#idle())
  }

  #idle(): void {
    const { active, queued } = this.#log.counts()
    if (active + queued > 0) {
      // Somebody resumed, and calls came in before this turn.
      if (this.#phase === 'finishing') this.#sealCore()
      this.#awaitIdle()
    } else if (this.#phase === 'finishing') {
      this.#close(this.#parts.clock.nowMs())
      this.#advance()
    } else if (this.#phase === 'closing') this.#stopPlatform()
  }

  #close(nowMs: number): void {
    const { core, announcer } = this.#parts
    const { active } = this.#log.counts()
    this.#phase = 'closing'
    this.#log.closing(nowMs)
    void core.stop({ graceMs: 0 })
    if (announcer !== undefined) void this.#sayOffline(announcer)
    this.#tell('closing')
    // With calls that still run, `#idle` goes on from here, or the deadline does.
    if (active === 0) this.#stopPlatform()
  }

  async #sayOffline(announcer: Announcer): Promise<void> {
    await this.#attempt('Telling gateways of the end', () => announcer.offline())
    this.#isOffline = true
    this.#endIfDone()
  }

  #stopPlatform(): void {
    if (this.#isStopping) return
    this.#isStopping = true
    void this.#attempt('Stopping the server', () => this.#parts.platform.stop()).then((isDone) => {
      this.#isClosed = isDone
      if (isDone) this.#endIfDone()
      else if (this.#phase === 'closing') this.#cut(false)
    })
  }

  #endIfDone(): void {
    if (this.#phase === 'closing' && this.#isClosed && this.#isOffline) this.#end(false, this.#log.counts(), 0)
  }

  #cut(isForced: boolean): void {
    const { core, platform, announcer } = this.#parts
    const left = this.#log.counts() // before the cut, which may end some of them in this turn
    let sockets = 0
    try {
      if (!this.#isClosed) sockets = platform.cut()
    } catch (error) {
      this.#log.failed('Cutting connections', error)
    }
    if (this.#phase !== 'closing' && announcer !== undefined) {
      // On its way, if the process lives that long; a gateway that misses it knows of the draining.
      void this.#attempt('Telling gateways of the end', () => announcer.offline())
    } else if (!this.#isOffline) this.#log.failed('Telling gateways of the end', 'no answer by the deadline')
    this.#end(isForced, left, sockets)
    void core.stop({ graceMs: 0 })
  }

  #end(isForced: boolean, left: CallCounts, sockets: number): void {
    const { clock, onReport } = this.#parts
    this.#cancelTimer()
    this.#phase = 'stopped'
    this.#tell('stopped')
    const report = this.#log.report(isForced, left, sockets, clock.nowMs())
    void quietly(() => onReport?.(report)) // it is as complete without what a hook throws
    this.#resolve(report)
  }

  #tell(phase: Phase): void {
    try {
      this.#parts.onPhase?.(phase)
    } catch (error) {
      this.#log.failed(`onPhase('${phase}')`, error)
    }
  }

  /** Starts `action` in this turn and waits for it. False when it failed, which is written down. */
  async #attempt(what: string, action: () => unknown): Promise<boolean> {
    try {
      await action()
      return true
    } catch (error) {
      this.#log.failed(what, error)
      return false
    }
  }
}
