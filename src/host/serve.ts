import type { AdmissionCore } from '../admission-core.ts'
import { type Clock, SystemClock } from '../clock.ts'
import type { PublicState } from '../control/reporter.ts'
import { quietly } from '../quietly.ts'
import { type Announcer, type Platform, Shutdown } from './shutdown.ts'
import type { Phase, ShutdownReport } from './shutdown-report.ts'
import { completeWindows, DEFAULT_WINDOWS, type PartialWindows, type Windows } from './windows.ts'

/** What is served: a Hono app, or anything else with its `fetch`. */
export interface FetchApp {
  fetch(request: Request, env?: object): Response | Promise<Response>
}

/** What is drained: what `createAdmission` returns. */
export interface AdmissionHolder {
  readonly core: AdmissionCore
}

/** Options of `serveWithAdmission` that are the same on every runtime. */
export interface ServeOptions extends PartialWindows {
  /** Default 3000; 0 takes a free one. */
  readonly port?: number | undefined
  /** Default: every address of the host. */
  readonly hostname?: string | undefined
  /** What begins the end; a second signal forces it. Default SIGTERM and SIGINT; `[]` for programs that see to it themselves. */
  readonly signals?: readonly string[] | undefined
  /**
   * Ends the process after a signal, with 0 when everything finished and 1 otherwise. Default true. False: the process
   * ends when nothing keeps it alive, or as the program does after `stopped`.
   */
  readonly exit?: boolean | undefined
  /** Registers this instance once it listens, and takes it back on the way out (GWY-7). Nothing of it is waited for at the start. */
  readonly announcer?: Announcer | undefined
  /**
   * Called as each phase begins: the place to end event streams and WebSockets, which otherwise last until the deadline.
   * What it throws is written into the report.
   */
  readonly onPhase?: ((phase: Phase) => void) | undefined
  /** Called once, before the process ends; for the log. What it throws is dropped. */
  readonly onReport?: ((report: ShutdownReport) => void) | undefined
  /** Default: the host's monotonic clock. */
  readonly clock?: Clock | undefined
}

/** A server that knows how to end. */
export interface ServeHandle<Server> {
  /** The runtime's own. */
  readonly server: Server
  readonly hostname: string
  /** The one it listens on, also when asked for 0. */
  readonly port: number
  readonly phase: Phase
  /** Resolves with the report when the server has ended, however that began. */
  readonly stopped: Promise<ShutdownReport>
  /**
   * Ends the server as a signal would, but never the process. Again, or after a signal: joins, and can only shorten what
   * is under way. Windows left out are those of the options.
   *
   * @throws {RangeError} when a window is no time that a timer can keep.
   */
  shutdown(windows?: PartialWindows): Promise<ShutdownReport>
}

/** A server that listens, and the process around it. */
export interface Host<Server> {
  readonly server: Server
  readonly hostname: string
  readonly port: number
  readonly platform: Platform
  /** Calls `fn` at each such signal. Returns what ends that. */
  onSignal(signal: string, fn: () => void): () => void
  exit(code: 0 | 1): void
}

/** A key press reaches a process below `npm` twice, from the terminal and from npm: that is one signal. */
const ECHO_MS = 100

/** {@link ServeOptions} with what was left out filled in. */
export interface CompleteServeOptions extends Omit<ServeOptions, keyof Windows> {
  readonly port: number
  readonly signals: readonly string[]
  readonly exit: boolean
  readonly clock: Clock
  readonly windows: Windows
}

/**
 * Before anything listens.
 *
 * @throws {RangeError} when a window is no time that a timer can keep.
 */
export function completeOptions(options: ServeOptions): CompleteServeOptions {
  const { hostname, announcer, onPhase, onReport } = options
  const { port = 3000, signals = ['SIGTERM', 'SIGINT'], exit = true, clock = new SystemClock() } = options
  const windows = completeWindows(options, DEFAULT_WINDOWS)
  return { port, hostname, signals, exit, announcer, onPhase, onReport, clock, windows }
}

/** Listens to signals for a server, and sees it through to its end. */
export function attend<Server>(
  host: Host<Server>,
  { core }: AdmissionHolder,
  { signals, exit, announcer, onPhase, onReport, clock, windows }: CompleteServeOptions,
): ServeHandle<Server> {
  const shutdown = new Shutdown({ core, platform: host.platform, clock, windows, announcer, onPhase, onReport })

  let first: { readonly signal: string; readonly atMs: number } | undefined
  const hear = (signal: string): void => {
    const nowMs = clock.nowMs()
    if (first === undefined) {
      first = { signal, atMs: nowMs }
      void shutdown.begin(signal)
    } else if (signal !== first.signal || nowMs - first.atMs >= ECHO_MS) shutdown.force()
  }
  const unhear = signals.map((signal) => host.onSignal(signal, () => hear(signal)))
  void shutdown.stopped.then(({ exitCode }) => {
    for (const end of unhear) end()
    // A turn later, so that whoever awaits `stopped` has seen it.
    if (first !== undefined && exit) clock.callAt(clock.nowMs(), () => host.exit(exitCode))
  })
  if (announcer !== undefined) announceDrains(core, announcer, shutdown)

  return {
    server: host.server,
    hostname: host.hostname,
    port: host.port,
    get phase() {
      return shutdown.phase
    },
    stopped: shutdown.stopped,
    shutdown: (given) => shutdown.begin('shutdown', given),
  }
}

/**
 * Gateways hear of this instance, and of each drain and return of it; of the last one from the shutdown (GWY-7). One that
 * cannot be told takes no instance down; the announcer itself repeats and reports it.
 */
function announceDrains(core: AdmissionCore, announcer: Announcer, shutdown: Shutdown): void {
  const unwatch = core.watch(({ from, to }) => {
    if (shutdown.phase !== 'serving' || isTurningAway(from) === isTurningAway(to)) return
    void quietly(() => (isTurningAway(to) ? announcer.draining('operator') : announcer.start()))
  })
  void shutdown.stopped.then(unwatch)
  void quietly(() => announcer.start())
  if (isTurningAway(core)) void quietly(() => announcer.draining('operator'))
}

function isTurningAway({ state, draining }: Pick<PublicState, 'state' | 'draining'>): boolean {
  return draining || state === 'stopped'
}
