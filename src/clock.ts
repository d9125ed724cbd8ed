/**
 * Time as the core sees it: the only file that names `performance` and `setTimeout`.
 */

/** Monotonic time and callbacks; injected, so that tests move it by hand (API-3). */
export interface Clock {
  /** Milliseconds since some fixed origin; never goes back while the clock is sound. May be fractional. */
  nowMs(): number
  /** Calls `fn` once at or after `atMs`, never before and never synchronously. Returns a cancel function; late or repeated cancels are harmless. */
  callAt(atMs: number, fn: () => void): () => void
}

/** The longest delay that host timers keep; beyond it they fire at once. Milliseconds. */
export const MAX_TIMER_MS = 2_147_483_647

/** The host's monotonic clock and timers. Reads nothing and starts nothing until asked (RUN-1). */
export class SystemClock implements Clock {
  nowMs(): number {
    return performance.now()
  }

  callAt(atMs: number, fn: () => void): () => void {
    let handle: ReturnType<typeof setTimeout>
    // Hosts fire some timers a fraction early and clamp long ones, so the clock has the last word (RUN-4).
    const arm = (): void => {
      const delayMs = Math.min(Math.max(0, Math.ceil(atMs - this.nowMs())), MAX_TIMER_MS)
      handle = setTimeout(() => (this.nowMs() < atMs ? arm() : fn()), delayMs)
    }
    arm()
    return () => clearTimeout(handle)
  }
}

/**
 * Lets everything else that is due on the host's event loop go first, wherever the injected clock stands.
 *
 * By a timer, and then a message: a message alone comes before what sockets have brought on Bun, and partly on Deno
 * (`update.load`), and a timer alone lets several that wait like this follow each other on Node, which goes on with timers
 * as long as any are due.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(() => afterMessage(resolve), 0))
}

function afterMessage(fn: () => void): void {
  if (typeof MessageChannel === 'undefined') {
    fn() // older dates of workerd have none, and need none
    return
  }
  const { port1, port2 } = new MessageChannel()
  port1.onmessage = () => {
    port1.close()
    fn()
  }
  port2.postMessage(null)
}

/**
 * A clock in whole milliseconds that never goes back: one older than the highest value seen counts as that value
 * (RAT-1, RAT-4). Limits and deadlines are compared on this line only, so their arithmetic is exact.
 */
export class Timeline {
  readonly #clock: Clock
  #latestMs: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#latestMs = Number.NEGATIVE_INFINITY
  }

  /** Reads the clock once. Whole milliseconds. */
  nowMs(): number {
    const nowMs = Math.floor(this.#clock.nowMs())
    if (nowMs < this.#latestMs) return this.#latestMs
    this.#latestMs = nowMs
    return nowMs
  }

  /** As {@link Clock.callAt}; an instant that has been reached is due at once, also while the clock is behind (RAT-1). */
  callAt(atMs: number, fn: () => void): () => void {
    return this.#clock.callAt(atMs > this.#latestMs ? atMs : Math.min(atMs, this.#clock.nowMs()), fn)
  }
}
