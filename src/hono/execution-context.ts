import type { Context } from 'hono'
import { getRuntimeKey } from 'hono/adapter'

/**
 * Asks the host to keep a request's work alive when its connection is reset (RUN-3), where the host can: without that,
 * workerd drops the work with its `finally`, and the permits with it.
 *
 * Hono tells by throwing that there is no execution context, which costs more than admission itself. A host either
 * passes one or it does not, so except on workerd the first request without one is the last that is asked.
 */
export class KeepAlive {
  #isWorthAsking: boolean

  constructor() {
    this.#isWorthAsking = true
  }

  /** `work` may reject: that is told to whoever awaits it, not to the host. */
  hold(c: Context, work: Promise<unknown>): void {
    if (!this.#isWorthAsking) return
    try {
      c.executionCtx.waitUntil(work.catch(() => {}))
    } catch {
      this.#isWorthAsking = getRuntimeKey() === 'workerd'
    }
  }
}

/**
 * How requests wait on this host (RUN-3): on workerd each on a timer of its own, for a timer there belongs to the
 * request that set it; at a compatibility date before 2024-10-14, or when the host does not tell, nobody can wake it.
 */
export function ownTimers(): boolean | 'look' {
  if (getRuntimeKey() !== 'workerd') return false
  const host: unknown = Reflect.get(globalThis, 'Cloudflare')
  if (typeof host !== 'object' || host === null || !('compatibilityFlags' in host)) return 'look'
  const { compatibilityFlags: flags } = host
  if (typeof flags !== 'object' || flags === null) return 'look'
  return Reflect.get(flags, 'handle_cross_request_promise_resolution') === true ? true : 'look'
}
