import { proxy } from 'hono/proxy'
import type { Clock } from '../clock.ts'
import { classifyFetchFailure, type FetchFailure } from './connect-errors.ts'
import type { Fetch } from './fetch.ts'
import type { ProxyRequest } from './proxy-request.ts'
import type { ResponseBodies } from './response-body.ts'
import type { Upstream } from './upstream.ts'
import type { Upstreams } from './upstreams.ts'

/** What a transfer needs of its gateway. */
export interface TransferParts {
  readonly upstreams: Upstreams
  readonly bodies: ResponseBodies
  readonly clock: Clock
  readonly fetch: Fetch
}

/** How sending a request to one upstream ended. */
export type Transfer =
  | { readonly kind: 'answered'; readonly response: Response }
  | {
      readonly kind: 'failed'
      readonly failure: FetchFailure
      /** Whether the head of an answer was there, which then could not be passed on: whatever was asked has been done. */
      readonly hasAnswer: boolean
      /** Whether the body, if there is one, is as it came: only then may it be handed to another upstream. */
      readonly isBodyUntouched: boolean
      readonly error: unknown
    }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'aborted' }

// What every runtime decodes by itself; the proxy helper then removes the header that would no longer be true.
const DECODED = /^\s*(x-)?(gzip|deflate|br|zstd)\s*$/i

/**
 * Sends a request to an upstream that was selected in this same turn, and counts it there until its response body has
 * ended. The deadline is for the head of the response; the client's abort reaches the upstream until the body ends.
 */
export function transfer(
  request: ProxyRequest,
  upstream: Upstream,
  deadlineAtMs: number,
  { upstreams, bodies, clock, fetch }: TransferParts,
): Promise<Transfer> {
  const uncount = upstreams.begin(upstream)
  const controller = new AbortController()
  const clientSignal = request.raw.signal
  let sent: Request | undefined
  let answer: Response | undefined

  return new Promise<Transfer>((resolve) => {
    let isSettled = false
    const settle = (outcome: Transfer): void => {
      isSettled = true
      cancelTimer()
      if (outcome.kind !== 'answered') finish()
      resolve(outcome)
    }
    const finish = (): void => {
      clientSignal.removeEventListener('abort', onAbort)
      uncount()
    }
    const onAbort = (): void => {
      if (isSettled) finish()
      else settle({ kind: 'aborted' })
      controller.abort(clientSignal.reason)
    }
    const cancelTimer = clock.callAt(deadlineAtMs, () => {
      settle({ kind: 'timeout' })
      controller.abort(new DOMException('The upstream did not answer in time', 'TimeoutError'))
    })
    clientSignal.addEventListener('abort', onAbort)
    if (clientSignal.aborted) return onAbort()

    let coding: string | null = null
    proxy(`${upstream.url}${request.path}`, {
      raw: request.raw,
      body: request.body,
      headers: request.headers,
      signal: controller.signal,
      redirect: 'manual',
      customFetch: async (outgoing) => {
        sent = outgoing
        answer = await fetch(outgoing)
        coding = answer.headers.get('content-encoding')
        return answer
      },
    }).then(
      (response) => {
        if (isSettled) return void response.body?.cancel().catch(() => {})
        upstreams.recordConnected(upstream)
        // A coding that nobody decoded must keep its name.
        if (coding?.split(',').every((one) => DECODED.test(one)) === false) {
          response.headers.set('content-encoding', coding)
        }
        settle({ kind: 'answered', response: counted(response, request.raw.method, bodies, finish) })
      },
      (error: unknown) => {
        if (isSettled) return
        const hasAnswer = answer !== undefined
        const failure = hasAnswer ? 'unknown' : classifyFetchFailure(error)
        if (failure === 'unsent') upstreams.recordConnectError(upstream)
        if (hasAnswer) {
          upstreams.recordConnected(upstream)
          // Nobody will read it, so its connection would never come free.
          controller.abort(error)
          answer?.body?.cancel(error).catch(() => {})
        }
        settle({ kind: 'failed', failure, hasAnswer, isBodyUntouched: isUntouched(request, sent), error })
      },
    )
  })
}

/** The response, whose body calls `onEnd` once it is over; at once where there is none. */
function counted(response: Response, method: string, bodies: ResponseBodies, onEnd: () => void): Response {
  const { body, status, statusText, headers } = response
  if (body === null || method === 'HEAD') {
    // Nobody reads the body of an answer to HEAD, so it would never end.
    body?.cancel().catch(() => {})
    onEnd()
    return body === null ? response : new Response(null, { status, statusText, headers })
  }
  return new Response(bodies.track(body, onEnd), { status, statusText, headers })
}

/**
 * Nothing has read or locked it. Node and Deno begin to read a body before they connect, Bun afterwards, so this is
 * asked of the streams themselves; whatever one of them says against it counts.
 */
function isUntouched({ raw, body }: ProxyRequest, sent: Request | undefined): boolean {
  if (body === null) return true
  return sent !== undefined && !sent.bodyUsed && !raw.bodyUsed && !body.locked
}
