/** The global limit over time, so that a handler can tell whether it may run. */
export class Limits {
  readonly #graceMs: number
  #limit: number
  #before: number
  #changedAtMs: number

  constructor(runtime: string) {
    // How long a handler may start after its grant. On workerd the grant wakes another request, which takes some
    // milliseconds (RUN-7); elsewhere both are in one turn.
    this.#graceMs = runtime === 'workerd' ? 25 : 1
    this.#limit = Number.POSITIVE_INFINITY
    this.#before = Number.POSITIVE_INFINITY
    this.#changedAtMs = 0
  }

  publish(limit: number | undefined): void {
    this.#before = this.#limit
    this.#limit = limit ?? Number.POSITIVE_INFINITY
    this.#changedAtMs = Date.now()
  }

  /** How many may run when a handler starts now: the limit in force, or that of its grant just before the change. */
  ofStart(): number {
    const isFresh = Date.now() - this.#changedAtMs <= this.#graceMs
    return isFresh ? Math.max(this.#limit, this.#before) : this.#limit
  }
}
