/**
 * For tests of your own limits: a clock moved by hand.
 *
 * @module
 */
export { ManualClock } from './manual-clock.ts'
