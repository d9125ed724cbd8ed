import type { Handler } from 'hono/types'

/** Handlers that are no calls. Known by identity, so neither mount point nor base path matters (ADX-6). */
const exemptHandlers = new WeakSet<object>()

/** Marks a handler of ours as no call: the middleware passes it by, wherever it is mounted. Returns it. */
export function exempt<H extends Handler>(handler: H): H {
  exemptHandlers.add(handler)
  return handler
}

export function isExempt(handler: object): boolean {
  return exemptHandlers.has(handler)
}
