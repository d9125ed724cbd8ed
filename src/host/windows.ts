import { MAX_TIMER_MS } from '../clock.ts'

/** How long each phase of the way out may take. Whole milliseconds, 0 to 2 147 483 647. */
export interface Windows {
  /** Readiness is off, calls are still admitted: the time in which balancers turn away. Default 3000. */
  readonly announceMs: number
  /** Nothing new is admitted; what runs and waits finishes. Default 5000. */
  readonly finishMs: number
  /** What still waits has been refused, and the server closes; at the end everything is cut. Default 1000. */
  readonly closeMs: number
}

/** Fits platforms that kill after 10 s, with a second to spare (DRN-5). */
export const DEFAULT_WINDOWS: Windows = Object.freeze({ announceMs: 3000, finishMs: 5000, closeMs: 1000 })

/**
 * The windows with what was left out filled in.
 *
 * @throws {RangeError} when one is no time that a timer can keep.
 */
export function completeWindows(windows: PartialWindows, defaults: Windows): Windows {
  const complete = (name: keyof Windows): number => {
    const ms = windows[name] ?? defaults[name]
    if (Number.isInteger(ms) && ms >= 0 && ms <= MAX_TIMER_MS) return ms
    throw new RangeError(`Cannot shut down with ${name} ${ms}: must be an integer from 0 to ${MAX_TIMER_MS}`)
  }
  return { announceMs: complete('announceMs'), finishMs: complete('finishMs'), closeMs: complete('closeMs') }
}

/** Windows of which some are left out. */
export type PartialWindows = { readonly [W in keyof Windows]?: number | undefined }
