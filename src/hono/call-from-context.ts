import type { Context } from 'hono'
import type { Call, DeclaredBytes, KeyFunction } from '../call.ts'
import { declaredBytes } from './declared-bytes.ts'
import { prefersAsync } from './prefer.ts'

/** A key selector: `undefined` leaves the request unpartitioned (PAR-3). */
export type ContextSelector = (c: Context) => string | undefined

/** Which scopes a request has (WEB-1). */
export interface RouteIdentity {
  readonly contract?: string | undefined
  readonly method?: string | undefined
}

/** How calls are read off requests; one for all of an admission's calls. */
export interface CallSource {
  readonly selectors: ReadonlyMap<string, ContextSelector>
  readonly isOneWay: ((c: Context) => boolean) | undefined
}

/**
 * A request as the core sees it.
 *
 * Everything is read off the request when somebody asks, so a call that finds room at once touches no header, body or
 * signal (RUN-2), unless one-way requests are acknowledged.
 */
export class ContextCall implements Call {
  readonly contract: string | undefined
  readonly method: string | undefined
  readonly #c: Context
  readonly #source: CallSource

  constructor(c: Context, source: CallSource, { contract, method }: RouteIdentity) {
    this.contract = contract
    this.method = method
    this.#c = c
    this.#source = source
  }

  get oneWay(): boolean {
    return prefersAsync(this.#c.req.header('prefer')) || this.#source.isOneWay?.(this.#c) === true
  }

  get bytes(): DeclaredBytes {
    return declaredBytes(this.#c.req.raw)
  }

  get keys(): KeyFunction | undefined {
    if (this.#source.selectors.size === 0) return undefined
    return (selector) => this.#key(selector) // read for partitioned routes only
  }

  /** A method, so that calling it is what touches the signal; the core looks at this property of every call. */
  signal(): AbortSignal {
    return this.#c.req.raw.signal
  }

  #key(selector: string): string | undefined {
    const key = this.#source.selectors.get(selector)?.(this.#c)
    // Checked where it is cheap: a promise or an object would be a new key for every request.
    if (key !== undefined && typeof key !== 'string') {
      throw new TypeError(
        `Cannot use the key of selector '${selector}': must be a string or undefined, is ${typeof key}`,
      )
    }
    return key
  }
}
