import { permitsOf, windowMsOf } from '../kernel/rate.ts'
import type { Route } from './route.ts'

/** One rate of a route as a caller may be told of it (WEB-4). */
export interface RateStatus {
  readonly scope: string
  /** Permits of an unused rate, and the milliseconds in which that many come back. */
  readonly limit: number
  readonly windowMs: number
  readonly remaining: number
  /** Milliseconds until all permits are back if nothing more is taken. */
  readonly resetMs: number
}

/** Of the rates of the route's scopes, the one with the fewest permits left. Partitions are not looked at. */
export function rateStatusOf(route: Route, nowMs: number): RateStatus | undefined {
  let least: RateStatus | undefined
  for (const { scope, rate } of route.rates) {
    const remaining = rate.remaining(nowMs)
    if (least !== undefined && least.remaining <= remaining) continue
    const resetMs = Math.max(0, rate.cleanAtMs() - nowMs)
    least = { scope: scope.name, limit: permitsOf(rate.config), windowMs: windowMsOf(rate.config), remaining, resetMs }
  }
  return least
}
