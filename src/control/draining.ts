import { Alarm } from '../alarm.ts'
import type { Timeline } from '../clock.ts'
import type { Refusal } from '../refusal.ts'
import type { Lifecycle } from './lifecycle.ts'
import type { Reporter, WriteOptions } from './reporter.ts'

export interface DrainOptions {
  /** How long calls are still admitted while readiness is already off; default 0. Milliseconds. */
  readonly announceMs?: number | undefined
}

/** What stop came to. */
export interface StopReport {
  /** Did everything finish? */
  readonly drained: boolean
  readonly active: number
  readonly queued: number
}

const UNCHANGED = { plan: null } as const

/**
 * The way out: announce, seal, wait until nothing runs and nothing waits. Driven by {@link progress}, which whoever ends
 * a call reports, and by one timer each for the end of an announcement and for stop's deadline.
 *
 * On workerd a timer is gone with the request that set it, so the end of an announcement is also looked for whenever a
 * call arrives ({@link look}, RUN-3).
 */
export class Draining {
  readonly #timeline: Timeline
  readonly #lifecycle: Lifecycle
  readonly #counts: () => { active: number; queued: number }
  readonly #reporter: Reporter
  readonly #announced: Alarm
  readonly #deadline: Alarm
  #sealAtMs: number // Infinity: nothing is announced
  #announcedBy: unknown
  #idleWaiters: (() => void)[]
  #stopped: Promise<StopReport> | null
  #report: ((report: StopReport) => void) | null // null: no stop, or it has resolved

  constructor(
    timeline: Timeline,
    lifecycle: Lifecycle,
    reporter: Reporter,
    counts: () => { active: number; queued: number },
  ) {
    this.#timeline = timeline
    this.#lifecycle = lifecycle
    this.#counts = counts
    this.#reporter = reporter
    this.#announced = new Alarm(timeline, () => this.look())
    this.#deadline = new Alarm(timeline, () => this.#resolveStop())
    this.#sealAtMs = Number.POSITIVE_INFINITY
    this.#announcedBy = undefined
    this.#idleWaiters = []
    this.#stopped = null
    this.#report = null
  }

  /** Seals at once, or after the announcement; the nearer of two announcements counts (DRN-7). */
  drain({ announceMs = 0, who }: DrainOptions & WriteOptions): typeof UNCHANGED {
    if (!(announceMs >= 0)) throw new RangeError(`Cannot drain: announceMs must be 0 or more, got ${announceMs}`)
    if (this.#lifecycle.drain === 'sealed') return UNCHANGED
    if (announceMs === 0) {
      this.#forgetAnnouncement()
      this.#lifecycle.seal()
    } else {
      this.#lifecycle.announce()
      this.#sealAtMs = Math.min(this.#sealAtMs, this.#timeline.nowMs() + announceMs)
      this.#announcedBy = who
      this.#announced.setBy(this.#sealAtMs)
    }
    return UNCHANGED
  }

  /** Seals if an announcement is over. Reads the clock only while there is one. */
  look(): void {
    if (this.#lifecycle.drain !== 'announcing' || this.#timeline.nowMs() < this.#sealAtMs) return
    this.#reporter.during({ who: this.#announcedBy }, () => {
      this.#forgetAnnouncement()
      this.#lifecycle.seal()
      return UNCHANGED
    })
  }

  resume(): typeof UNCHANGED {
    this.#forgetAnnouncement()
    this.#lifecycle.resume()
    return UNCHANGED
  }

  /** Nothing starts any more. Returns what waiters are refused with. `graceMs` is that of the {@link stop} to follow. */
  seal(graceMs: number | undefined): Refusal {
    mustBeGrace(graceMs)
    if (this.#lifecycle.drain === 'announcing') this.#lifecycle.seal()
    this.#forgetAnnouncement()
    return this.#lifecycle.stop()
  }

  stop(graceMs: number | undefined): Promise<StopReport> {
    mustBeGrace(graceMs)
    this.#stopped ??= new Promise((resolve) => {
      this.#report = resolve
    })
    this.progress()
    if (this.#report !== null && graceMs !== undefined) this.#deadline.setBy(this.#timeline.nowMs() + graceMs)
    return this.#stopped
  }

  whenIdle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve)
      this.progress()
    })
  }

  /** A call ended. Cheap while nobody waits for the end. */
  progress(): void {
    if (this.#report === null && this.#idleWaiters.length === 0) return
    const { active, queued } = this.#counts()
    if (active > 0 || queued > 0) return
    const waiters = this.#idleWaiters
    this.#idleWaiters = []
    for (const resolve of waiters) resolve()
    if (this.#report !== null) this.#resolveStop()
  }

  #forgetAnnouncement(): void {
    this.#announced.clear()
    this.#sealAtMs = Number.POSITIVE_INFINITY
  }

  #resolveStop(): void {
    this.#deadline.clear()
    const { active, queued } = this.#counts()
    this.#report?.({ drained: active === 0 && queued === 0, active, queued })
    this.#report = null
  }
}

function mustBeGrace(graceMs: number | undefined): void {
  if (graceMs !== undefined && !(graceMs >= 0)) {
    throw new RangeError(`Cannot stop: graceMs must be 0 or more, got ${graceMs}`)
  }
}
