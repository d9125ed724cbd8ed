import { setTimeout as sleep } from 'node:timers/promises'

/** What came of one order. */
export type Outcome =
  /** The handler saw `running` orders when it started, itself included, and `limit` in force. */
  | { readonly kind: 'admitted'; readonly latencyMs: number; readonly running: number; readonly limit: number }
  | { readonly kind: 'refused'; readonly reason: string }
  /** No answer, or one that nobody expects. */
  | { readonly kind: 'lost'; readonly why: string }

/** What came of many. */
export class Tally {
  admitted = 0
  refused = 0
  lost = 0
  overLimit = 0
  readonly latenciesMs: number[] = []
  readonly reasons: Map<string, number> = new Map()
  /** The most orders that any order saw running, by the limit in force when it started. */
  readonly peaks: Map<number, number> = new Map()
  /** Why the first lost one was lost. */
  firstLost: string | undefined

  add(outcome: Outcome): void {
    switch (outcome.kind) {
      case 'admitted': {
        const { latencyMs, running, limit } = outcome
        this.admitted += 1
        this.latenciesMs.push(latencyMs)
        if (running > limit) this.overLimit += 1
        this.peaks.set(limit, Math.max(this.peaks.get(limit) ?? 0, running))
        break
      }
      case 'refused':
        this.refused += 1
        this.reasons.set(outcome.reason, (this.reasons.get(outcome.reason) ?? 0) + 1)
        break
      case 'lost':
        this.lost += 1
        this.firstLost ??= outcome.why
        break
    }
  }

  /** The least latency that 99 % do not exceed; 0 without any. Milliseconds. */
  get p99Ms(): number {
    const sorted = [...this.latenciesMs].sort((a, b) => a - b)
    return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0
  }
}

export interface Listener {
  sent(): void
  answered(outcome: Outcome): void
}

/** How long a refused lane waits; a polite client would heed `Retry-After`. Milliseconds. */
const BACKOFF_MS = 250

/**
 * One client: sends an order, waits for its answer, sends the next one. Ends when `signal` is aborted and the last
 * answer is in: `answered` is called once for each `sent`.
 */
export async function runLane(url: string, signal: AbortSignal, listener: Listener): Promise<void> {
  while (!signal.aborted) {
    listener.sent()
    const outcome = await sendOrder(url)
    listener.answered(outcome)
    if (outcome.kind !== 'admitted') await sleep(BACKOFF_MS)
  }
}

async function sendOrder(url: string): Promise<Outcome> {
  const startMs = performance.now()
  try {
    const response = await fetch(url, { method: 'POST' })
    const body: unknown = await response.json()
    if (response.status === 201 && isOrder(body)) {
      return { kind: 'admitted', latencyMs: performance.now() - startMs, running: body.running, limit: body.limit }
    }
    if (response.status === 503 && isProblem(body)) return { kind: 'refused', reason: body.reason }
    return { kind: 'lost', why: `status ${response.status}: ${JSON.stringify(body)}` }
  } catch (error) {
    return { kind: 'lost', why: String(error) }
  }
}

function isOrder(body: unknown): body is { running: number; limit: number } {
  if (typeof body !== 'object' || body === null || !('running' in body) || !('limit' in body)) return false
  return typeof body.running === 'number' && typeof body.limit === 'number'
}

function isProblem(body: unknown): body is { reason: string } {
  return typeof body === 'object' && body !== null && 'reason' in body && typeof body.reason === 'string'
}
