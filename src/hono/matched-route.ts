import type { Context } from 'hono'
import { matchedRoutes } from 'hono/route'
import type { RouterRoute } from 'hono/types'
import { findTargetHandler, isMiddleware } from 'hono/utils/handler'
import type { AdmissionCore, BoundRoute } from '../admission-core.ts'
import { isExempt } from './exempt.ts'

/** Where a request goes, as far as admission cares; made once a route. */
export interface Destination {
  /** Absent: unmatched, only the global scope applies. */
  readonly contract: string | undefined
  readonly method: string | undefined
  readonly bound: BoundRoute
  /** An admin or health route: no call at all (ADX-6). */
  readonly isExempt: boolean
}

/**
 * Finds the contract and method of a request (WEB-1).
 *
 * The contract is the base path of the sub-app, the method is `METHOD /full/pattern` as registered: `GET` also for a
 * HEAD request, `ALL` for a route made with `all`. The matched route is the first behind the middleware that asks, or else
 * before it, whose handler takes fewer than two parameters; one written `(c, next)` looks like a middleware and is passed
 * over. Routes answer for life, so each is judged once: a request costs one look-up for each of these routes.
 */
export class Destinations {
  readonly #core: AdmissionCore
  readonly #known: WeakMap<RouterRoute, Destination | null> // null: a middleware
  readonly #unmatched: Destination

  constructor(core: AdmissionCore) {
    this.#core = core
    this.#known = new WeakMap()
    this.#unmatched = { contract: undefined, method: undefined, bound: core.route(), isExempt: false }
  }

  find(c: Context): Destination {
    const routes = matchedRoutes(c)
    const { routeIndex } = c.req // that of the middleware which asks: the handler mostly comes next (`hono.admission`)
    return this.#first(routes, routeIndex + 1, routes.length) ?? this.#first(routes, 0, routeIndex) ?? this.#unmatched
  }

  #first(routes: readonly RouterRoute[], from: number, to: number): Destination | undefined {
    for (let index = from; index < to; index += 1) {
      const route = routes[index]
      if (route === undefined) break
      let destination = this.#known.get(route)
      if (destination === undefined) {
        destination = this.#judge(route)
        this.#known.set(route, destination)
      }
      if (destination !== null) return destination
    }
    return undefined
  }

  #judge(route: RouterRoute): Destination | null {
    // A sub-app with its own onError wraps every handler in one of two parameters.
    const handler = findTargetHandler(route.handler)
    if (isMiddleware(handler)) return null
    const contract = route.basePath
    const method = `${route.method} ${route.path}`
    return { contract, method, bound: this.#core.route(contract, method), isExempt: isExempt(handler) }
  }
}
