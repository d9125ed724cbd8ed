import { MAX_TIMER_MS } from '../clock.ts'

/**
 * An option that is a count or a time.
 *
 * @throws {RangeError} unless it is a whole number from `least` to what a timer can keep.
 */
export function whole(action: string, name: string, value: number, least: number): number {
  if (Number.isSafeInteger(value) && value >= least && value <= MAX_TIMER_MS) return value
  throw new RangeError(`Cannot ${action}: ${name} is ${value}, not a whole number from ${least} to ${MAX_TIMER_MS}`)
}
