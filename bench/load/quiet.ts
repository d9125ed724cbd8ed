import { median, type Reading } from '../engine.ts'

/** Of one core. What others take of it, the server or the generator cannot have. */
export const TOLERABLE = 0.2

/**
 * The half in which other programs disturbed least, and the middle one. Chosen by what they took of the machine, never
 * by a result.
 */
export function quieterHalf<T>(all: readonly T[], disturbanceOf: (each: T) => number): readonly T[] {
  const sorted = all.toSorted((a, b) => disturbanceOf(a) - disturbanceOf(b))
  return sorted.slice(0, Math.ceil(sorted.length / 2))
}

/** A cell that says how much those that were chosen were disturbed all the same. */
export function disturbanceReading(name: string, disturbances: readonly number[]): Reading {
  return { name, column: OTHERS, value: 100 * median(disturbances), unit: '' }
}

const OTHERS = 'others CPU %'

export function disturbanceRemarks(readings: readonly Reading[]): readonly string[] {
  const disturbed = readings.filter(({ column, value }) => column === OTHERS && value > 100 * TOLERABLE)
  if (disturbed.length === 0) return []
  return [
    `Other programs took more than ${100 * TOLERABLE} % of a core in ${disturbed.length} of these rows, even in the ` +
      'quieter half of the rounds: their times and their goodput say more of the machine than of the server.',
  ]
}
