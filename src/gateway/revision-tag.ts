/**
 * The `ETag` of the upstreams: it names process and revision, so that one from before a restart is stale (ADX-3).
 * Draws its randomness when first asked (RUN-1).
 */
export class RevisionTag {
  #process: string | undefined

  constructor() {
    this.#process = undefined
  }

  /** A strong tag. */
  of(revision: number): string {
    this.#process ??= crypto.randomUUID().slice(0, 8)
    return `"${this.#process}.${revision}"`
  }
}
