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
