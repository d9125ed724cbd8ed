import { unreachable } from './assert.ts'
import type { RefusalReason } from './refusal.ts'

/** Every answer that was given, since the core was made (API-4). Counts, ≥ 0. */
export interface Totals {
  admitted: number
  queued: number
  readonly refused: { [reason in RefusalReason]: number }
}

export function noTotals(): Totals {
  return {
    admitted: 0,
    queued: 0,
    refused: {
      concurrency: 0,
      rate: 0,
      partition_concurrency: 0,
      partition_rate: 0,
      partition_limit: 0,
      queue_calls: 0,
      queue_bytes: 0,
      queue_timeout: 0,
      one_way: 0,
      delivery: 0,
      draining: 0,
      stopped: 0,
      aborted: 0,
    },
  }
}

/** By a switch: V8 looks a property up by hand once several names have come by in one place (`core.refuse`). */
export function countRefusal({ refused }: Totals, reason: RefusalReason): void {
  switch (reason) {
    case 'concurrency':
      refused.concurrency += 1
      break
    case 'queue_calls':
      refused.queue_calls += 1
      break
    case 'queue_timeout':
      refused.queue_timeout += 1
      break
    case 'rate':
      refused.rate += 1
      break
    case 'partition_concurrency':
      refused.partition_concurrency += 1
      break
    case 'partition_rate':
      refused.partition_rate += 1
      break
    case 'partition_limit':
      refused.partition_limit += 1
      break
    case 'queue_bytes':
      refused.queue_bytes += 1
      break
    case 'one_way':
      refused.one_way += 1
      break
    case 'delivery':
      refused.delivery += 1
      break
    case 'draining':
      refused.draining += 1
      break
    case 'stopped':
      refused.stopped += 1
      break
    case 'aborted':
      refused.aborted += 1
      break
    default:
      unreachable(reason)
  }
}
