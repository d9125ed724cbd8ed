/** The overload case: what its handler costs, and the policies it is put under. Both the server and the case read it. */

import type { ConfigInput } from '../../src/config/types.ts'

/** Of the handler: it waits, as for a database, and then works. */
export const WAIT_MS = 5
export const WORK_MS = 2

export const ADMIN_PATH = '/admission'
export const ADMIN_TOKEN = 'bench'

export interface Policy {
  /** Undefined: no admission. */
  readonly config: ConfigInput | undefined
  /** At most so many handlers run. */
  readonly limit: number
  /** At most so long a call waits. Milliseconds. */
  readonly maxDelayMs: number
  /** The limits that an operator sets, one after the other, while it is under load. */
  readonly changes: readonly number[]
}

const LIMIT = 8
/**
 * Without a queue nothing is there to start while those that run wait; with 8, of which each works for 2 ms and waits
 * for 5, the processor stands still a fifth of the time.
 */
const LIMIT_WITHOUT_QUEUE = 16

export const POLICIES: { readonly [name: string]: Policy } = {
  none: { config: undefined, limit: Number.POSITIVE_INFINITY, maxDelayMs: 0, changes: [] },
  'limit-only': policy([LIMIT_WITHOUT_QUEUE]),
  'short-queue': policy([LIMIT], 16, 50),
  'long-queue': policy([LIMIT], 1000, 1000),
  // Each of them holds the goals if it stays. 16 does not, with this queue: an answer takes 90 ms when all goes well.
  'changing-limit': policy([LIMIT, 12, 6, 10], 16, 50),
}

function policy(limits: readonly [number, ...number[]], maxQueuedCalls = 0, maxQueueDelayMs = 0): Policy {
  const queue = maxQueuedCalls === 0 ? {} : { queue: { maxQueuedCalls, maxQueueDelayMs } }
  return {
    config: { global: { concurrency: limits[0] }, ...queue },
    limit: Math.max(...limits),
    maxDelayMs: maxQueueDelayMs,
    changes: limits.length === 1 ? [] : limits,
  }
}
