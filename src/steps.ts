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
