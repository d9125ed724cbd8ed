import type { Clock } from '../clock.ts'

/** How a request is sent: the host's `fetch`, or another with its shape, such as a Hono app's `fetch`. */
export type Fetch = (request: Request) => Response | Promise<Response>

/** The host's own `fetch`, looked up when it is called. */
export const hostFetch: Fetch = (request) => globalThis.fetch(request)

/** The time that {@link within} gave was over. */
export class DeadlineError extends Error {
  readonly code = 'GATEWAY_DEADLINE'
  constructor(timeoutMs: number) {
    super(`No answer within ${timeoutMs} ms`)
    this.name = 'DeadlineError'
  }
}

/**
 * Runs `work` with a signal that is aborted after `timeoutMs` or with `outer`, and rejects then at once, whether or not
 * `work` listens: a deadline must not depend on an abort being heard (RUN-2). One timer, cancelled when `work` settles.
 */
export function within<T>(
  clock: Clock,
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<T>,
  outer?: AbortSignal,
): Promise<T> {
  const controller = new AbortController()
  return new Promise<T>((resolve, reject) => {
    const stop = (reason: unknown): void => {
      settle()
      reject(reason)
      controller.abort(reason)
    }
    const stopOuter = (): void => stop(outer?.reason)
    const cancelTimer = clock.callAt(clock.nowMs() + timeoutMs, () => stop(new DeadlineError(timeoutMs)))
    const settle = (): void => {
      cancelTimer()
      outer?.removeEventListener('abort', stopOuter)
    }
    outer?.addEventListener('abort', stopOuter)
    if (outer?.aborted) return stopOuter()
    work(controller.signal).then(resolve, reject).finally(settle)
  })
}
