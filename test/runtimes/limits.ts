import type { AdmissionVariables } from '../../mod.ts'

/** What handlers know of their request. */
export interface RequestEnv {
  Variables: AdmissionVariables & {
    /** When the request came to admission. */
    arrivedAtMs: number
  }
}

/** Clocks of whole milliseconds, read one after the other. */
const TOLERANCE_MS = 3
const REMEMBERED = 200

/** The global limit over time, so that a handler can tell whether it may run. */
export class Limits {
  readonly #history: { readonly atMs: number; readonly limit: number }[]

  constructor() {
    this.#history = [{ atMs: 0, limit: Number.POSITIVE_INFINITY }]
  }

  publish(limit: number = Number.POSITIVE_INFINITY): void {
    this.#history.push({ atMs: Date.now(), limit })
    if (this.#history.length > REMEMBERED) this.#history.shift()
  }

  /**
   * How many may run when a handler starts now whose permit was granted then: what was allowed at that time, or at any
   * time since. For whoever runs now was granted a permit under one of these limits, or held it already when this one
   * was granted, within the limit of that moment. Holds however late a handler starts (RUN-7).
   */
  since(grantedAtMs: number): number {
    let most = 0
    for (let index = this.#history.length - 1; index >= 0; index -= 1) {
      const entry = this.#history[index]
      if (entry === undefined) break
      most = Math.max(most, entry.limit)
      if (entry.atMs <= grantedAtMs - TOLERANCE_MS) break
    }
    return most
  }
}
