import { nextTurn } from './clock.ts'

/**
 * Work that can stop after any of its steps: done at once, or with turns of the event loop in between. What it works on
 * may change meanwhile, so only its last step may count on it.
 */
export type Steps<T> = Generator<void, T, void>

/** What planning and compiling do in one step: about a millisecond. Scopes. */
export const SCOPES_PER_STEP = 2048

export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

/** At once what is one step, the rest with turns of the event loop in between. No promise: it is done. */
export function inTurns<T>(steps: Steps<T>): T | Promise<T> {
  const step = steps.next()
  return step.done === true ? step.value : remaining(steps)
}

// A turn is asked for only when it is waited for: a timer that is due by then lets no socket go first on Bun (`update.load`).
async function remaining<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    await nextTurn()
    const step = steps.next()
    if (step.done === true) return step.value
  }
}
