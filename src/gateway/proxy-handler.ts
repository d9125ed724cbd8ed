import type { Context, Handler } from 'hono'
import { unreachable } from '../assert.ts'
import { quietly } from '../quietly.ts'
import { problem } from './problem.ts'
import { type ForwardingOptions, forwardingOf, type ProxyRequest, proxyRequest, unsupported } from './proxy-request.ts'
import type { Selection } from './selection.ts'
import { type Transfer, type TransferParts, transfer } from './transfer.ts'
import type { Upstream } from './upstream.ts'

/** A request that an upstream did not answer, for logs. */
export interface ProxyFailure {
  readonly upstream: string
  /** `unsent`, `cut` and `unknown` as in {@link FetchFailure}. */
  readonly failure: 'unsent' | 'cut' | 'unknown' | 'timeout'
  readonly error: unknown
  /** Whether the request goes to an upstream once more, unless this very call takes the last one for it out. */
  readonly isRetried: boolean
}

export interface ProxyOptions extends ForwardingOptions {
  /** The key for `consistent-hash`. */
  readonly key?: (c: Context) => string | undefined
  /** Id of the upstream that a request is bound to, from a cookie say; one that cannot be selected is not honoured (GWY-4). */
  readonly pinned?: (c: Context) => string | undefined
  /** For the head of the response, retry included. Milliseconds; default 60 000. The body may take as long as it likes. */
  readonly timeoutMs?: number
  /** Called for each failure; what it throws is ignored. */
  readonly onFailure?: (failure: ProxyFailure) => void
}

/** `c.var.upstream` is the id of the upstream that answered, or was tried last. */
export interface GatewayEnv {
  Variables: { upstream?: string }
}

/** What the handler needs of its gateway. */
export interface ProxyParts extends TransferParts {
  readonly selection: Selection
}

// Safe methods: answering twice, or by two upstreams, changes nothing.
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * A handler that sends each request to a selected upstream and its answer back, both streamed.
 *
 * One retry at most (GWY-5), never after the head of an answer and never with a body that an upstream may have read:
 * - no connection was made: any method, on another upstream;
 * - the connection was cut, as happens with an idle socket: safe methods without body, on another upstream if there is one;
 * - not recognised: safe methods without body, on another upstream.
 */
export function createProxyHandler(
  parts: ProxyParts,
  options: ProxyOptions & { readonly timeoutMs: number },
): Handler<GatewayEnv> {
  const { selection } = parts
  const forwarding = forwardingOf(options)
  return async (c) => {
    const refused = unsupported(c.req.raw)
    if (refused !== null) return refused
    const request = proxyRequest(c, forwarding)
    const key = options.key?.(c)
    const deadlineAtMs = parts.upstreams.nowMs() + options.timeoutMs

    // Selected and counted in one turn: between the two nothing can begin to drain (GWY-3).
    const first = selection.select({ key, pinned: options.pinned?.(c) })
    if (first === undefined) return unavailable(parts)
    c.set('upstream', first.id)
    const outcome = await transfer(request, first, deadlineAtMs, parts)
    const retry = retryOf(request, outcome)
    report(options, outcome, first, retry !== null && canRetry(retry, first, selection))
    // The hook may have changed the upstreams, so the second is selected after it, and counted in that same turn.
    const second = retry === null ? undefined : retryTarget(retry, first, key, selection)
    if (second === undefined) return answerOf(outcome)

    c.set('upstream', second.id)
    const lastOutcome = await transfer(request, second, deadlineAtMs, parts)
    report(options, lastOutcome, second, false)
    return answerOf(lastOutcome)
  }
}

/** Where a request that failed may go once more. */
type Retry = 'other' | 'any'

function retryOf({ raw, body }: ProxyRequest, outcome: Transfer): Retry | null {
  if (outcome.kind !== 'failed' || outcome.hasAnswer || raw.signal.aborted) return null
  if (outcome.failure === 'unsent') return outcome.isBodyUntouched ? 'other' : null
  if (body !== null || !SAFE_METHODS.has(raw.method)) return null
  // An upstream that let an idle socket go is well: with no other, a new connection to it is the retry.
  return outcome.failure === 'cut' ? 'any' : 'other'
}

function canRetry(retry: Retry, tried: Upstream, selection: Selection): boolean {
  return selection.hasCandidate(tried) || (retry === 'any' && selection.hasCandidate())
}

function retryTarget(
  retry: Retry,
  tried: Upstream,
  key: string | undefined,
  selection: Selection,
): Upstream | undefined {
  return selection.select({ key, exclude: tried }) ?? (retry === 'any' ? selection.select({ key }) : undefined)
}

function answerOf(outcome: Transfer): Response {
  switch (outcome.kind) {
    case 'answered':
      return outcome.response
    case 'aborted':
      return new Response(null, { status: 499 }) // the client is gone; for logs only
    case 'timeout':
      return problem(504, {
        title: 'Gateway timeout',
        detail: 'The upstream did not answer in time.',
        reason: 'upstream_timeout',
      })
    case 'failed':
      return outcome.failure === 'unsent'
        ? problem(
            502,
            { title: 'Bad gateway', detail: 'No connection to the upstream.', reason: 'upstream_unreachable' },
            { 'retry-after': '1' },
          )
        : problem(502, {
            title: 'Bad gateway',
            detail: 'The upstream did not answer the request.',
            reason: 'upstream_failed',
          })
    default:
      return unreachable(outcome)
  }
}

/** Nothing can be selected: refused at once, never sent to an upstream that asked for nothing (GWY-4). */
function unavailable({ selection }: ProxyParts): Response {
  const details = {
    no_upstreams: 'No upstream is configured.',
    all_unhealthy: 'No upstream is live and healthy.',
    all_draining: 'Every upstream is draining.',
  } as const
  const reason = selection.unavailableReason()
  return problem(503, { title: 'Service unavailable', detail: details[reason], reason }, { 'retry-after': '1' })
}

function report({ onFailure }: ProxyOptions, outcome: Transfer, upstream: Upstream, isRetried: boolean): void {
  if (onFailure === undefined || (outcome.kind !== 'failed' && outcome.kind !== 'timeout')) return
  const failure = outcome.kind === 'timeout' ? 'timeout' : outcome.failure
  const error = outcome.kind === 'timeout' ? undefined : outcome.error
  void quietly(() => onFailure({ upstream: upstream.id, failure, error, isRetried }))
}
