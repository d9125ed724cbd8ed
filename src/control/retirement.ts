import type { Program } from '../program/program.ts'

/**
 * Programs that are no longer current and still have calls. One is reclaimed when its last call, active or queued, has
 * ended (PUB-7); nothing else refers to it, so repeated updates grow nothing.
 */
export class Retirement {
  readonly #retired: Set<Program>

  constructor() {
    this.#retired = new Set()
  }

  /** Oldest first. */
  get programs(): Iterable<Program> {
    return this.#retired
  }

  retire(program: Program): void {
    if (!program.isIdle) this.#retired.add(program)
  }

  /** A call of the program has ended. Says whether that reclaimed it. */
  reclaim(program: Program): boolean {
    return this.#retired.size > 0 && program.isIdle && this.#retired.delete(program)
  }
}
