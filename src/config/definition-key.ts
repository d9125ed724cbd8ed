import { unreachable } from '../assert.ts'
import type { PartitionConfig, RateConfig } from './types.ts'

/** What makes two rates the same state (STA-1): every setting, in a fixed order. */
export function rateKey(rate: RateConfig): string {
  switch (rate.algorithm) {
    case 'token-bucket':
      return `token-bucket,${rate.tokenLimit},${rate.tokensPerPeriod},${rate.replenishmentPeriodMs}`
    case 'fixed-window':
      return `fixed-window,${rate.permitLimit},${rate.windowMs}`
    case 'sliding-window':
      return `sliding-window,${rate.permitLimit},${rate.windowMs},${rate.segmentsPerWindow}`
    default:
      return unreachable(rate)
  }
}

/** What makes two partition pools of one scope and selector the same state (STA-1). */
export function partitionKey(partition: PartitionConfig): string {
  const { maxPartitions, idleTimeoutMs, onPartitionLimit, concurrency, rate } = partition
  const limits = `${concurrency ?? ''},${rate === undefined ? '' : rateKey(rate)}`
  return `${maxPartitions},${idleTimeoutMs},${onPartitionLimit},${limits}`
}
