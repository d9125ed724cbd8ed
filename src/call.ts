/** Declared bytes of a request body (QUE-8): `unknown` reserves the captured program's `unknownBodyBytes`. */
export type DeclaredBytes = number | 'unknown'

/**
 * One request as the core sees it. `oneWay` and `bytes` are read at most once, and only when the call finds no room, so
 * they may be costly getters; a function as `signal` is called at most once. The rest may be read more than once.
 */
export interface Call {
  /** Contract id; absent or unknown: only the global scope applies. */
  readonly contract?: string | undefined
  /** Method id within the contract; absent or unknown: only global and contract apply. */
  readonly method?: string | undefined
  /** Default false. */
  readonly oneWay?: boolean | undefined
  /** What the call reserves while it waits: a whole number ≥ 0, or `admit` throws a RangeError; default 0. */
  readonly bytes?: DeclaredBytes | undefined
  /**
   * Partition keys by selector name, as a record or a function of the name. When given it wins over the core's
   * selectors; a name without a key leaves the call unpartitioned there (PAR-3, API-5).
   */
  readonly keys?: KeyRecord | KeyFunction | undefined
  /** Will it have no response body to be read? Then `delivery` does not apply to it. Default false. */
  readonly bodiless?: boolean | undefined
  /**
   * Aborts the call while it waits. A function is asked only when the call really queues (RUN-2), for hosts where
   * touching the signal is dear.
   */
  readonly signal?: AbortSignal | (() => AbortSignal | undefined) | undefined
}

export type KeyRecord = { readonly [selector: string]: string | undefined }
export type KeyFunction = (selector: string) => string | undefined
/** A key selector of the core: a function of the call. `undefined` leaves the call unpartitioned. */
export type Selector = (call: Call) => string | undefined

/**
 * Selectors by name, as a configuration may name them; one that is `undefined` is as good as absent.
 *
 * @throws {TypeError} when one is no function.
 */
export function registered<S>(
  selectors: { readonly [name: string]: S | undefined } | undefined,
): ReadonlyMap<string, S> {
  const byName = new Map<string, S>()
  for (const [name, selector] of Object.entries(selectors ?? {})) {
    if (selector === undefined) continue
    if (typeof selector !== 'function') {
      throw new TypeError(
        `Cannot register selector '${name}': must be a function, is ${selector === null ? null : typeof selector}`,
      )
    }
    byName.set(name, selector)
  }
  return byName
}
