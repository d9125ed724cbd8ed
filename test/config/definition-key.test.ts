import { expect, it } from 'vitest'
import { partitionKey, rateKey } from '../../src/config/definition-key.ts'
import { parseConfig } from '../../src/config/parse.ts'
import type { PartitionConfig, RateConfig } from '../../src/config/types.ts'
import { fixedWindow, slidingWindow, tokenBucket } from './support.ts'

const rates: RateConfig[] = [
  tokenBucket,
  { ...tokenBucket, tokenLimit: 1 },
  { ...tokenBucket, tokensPerPeriod: 1 },
  { ...tokenBucket, replenishmentPeriodMs: 1 },
  fixedWindow,
  { ...fixedWindow, permitLimit: 1 },
  { ...fixedWindow, windowMs: 1 },
  slidingWindow,
  { ...slidingWindow, permitLimit: 1 },
  { ...slidingWindow, windowMs: 10 },
  { ...slidingWindow, segmentsPerWindow: 1 },
]

const base: PartitionConfig = { maxPartitions: 5, idleTimeoutMs: 6, onPartitionLimit: 'evict', concurrency: 1 }
const unlimited = { maxPartitions: 5, idleTimeoutMs: 6, onPartitionLimit: 'evict' } as const
const partitions: PartitionConfig[] = [
  base,
  { ...base, maxPartitions: 6 },
  { ...base, idleTimeoutMs: 5 },
  { ...base, onPartitionLimit: 'refuse' },
  { ...base, concurrency: 0 },
  ...rates.map((rate) => ({ ...base, rate })),
  ...rates.map((rate) => ({ ...unlimited, rate })),
]

it('STA-1 two rates have one key only if they are the same in every setting', () => {
  expect(new Set(rates.map(rateKey)).size).toBe(rates.length)
})

it('STA-1 two partitions have one key only if they are the same in every setting; closed is not absent', () => {
  expect(new Set(partitions.map(partitionKey)).size).toBe(partitions.length)
})

it('STA-1 neither the order of the settings nor a default that is written out makes another definition', () => {
  const reversed = (value: object): object => Object.fromEntries(Object.entries(value).reverse())
  const written = { ...base, maxPartitions: 10_000, idleTimeoutMs: 60_000, rate: reversed(slidingWindow) }
  const { global } = parseConfig({
    global: { partitions: { a: reversed(written), b: { rate: slidingWindow, concurrency: 1 } } },
  })
  const [a, b] = Object.values(global?.partitions ?? {})
  expect(a).toBeDefined()
  expect(a && partitionKey(a)).toBe(b && partitionKey(b))
})
