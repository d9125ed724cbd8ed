import { expect } from 'vitest'
import { type ParseOptions, parseConfig } from '../../src/config/parse.ts'
import type { ConfigInput, FixedWindowConfig, SlidingWindowConfig, TokenBucketConfig } from '../../src/config/types.ts'
import { AdmissionConfigError, type ConfigIssue } from '../../src/errors.ts'
import type { Random } from '../support/random.ts'

export const tokenBucket: TokenBucketConfig = {
  algorithm: 'token-bucket',
  tokenLimit: 200,
  tokensPerPeriod: 100,
  replenishmentPeriodMs: 1000,
}
export const fixedWindow: FixedWindowConfig = { algorithm: 'fixed-window', permitLimit: 50, windowMs: 1000 }
export const slidingWindow: SlidingWindowConfig = {
  algorithm: 'sliding-window',
  permitLimit: 50,
  windowMs: 1000,
  segmentsPerWindow: 10,
}

/** Every setting there is, none at its default. */
export const everything: ConfigInput = {
  queue: {
    maxQueuedCalls: 200,
    maxQueuedBytes: 1024,
    maxQueueDelayMs: 2000,
    queueOneWayCalls: true,
    unknownBodyBytes: 10,
  },
  global: {
    concurrency: 100,
    rate: tokenBucket,
    partitions: {
      tenant: {
        maxPartitions: 10,
        idleTimeoutMs: 1,
        onPartitionLimit: 'refuse',
        concurrency: 5,
        rate: fixedWindow,
      },
    },
  },
  contracts: {
    '/orders': {
      concurrency: 20,
      rate: slidingWindow,
      partitions: { client: { maxPartitions: 1, idleTimeoutMs: 2, onPartitionLimit: 'evict', concurrency: 0 } },
      holdUntil: 'body',
      delivery: { key: 'client', maxOpenBodies: 8, stallTimeoutMs: 3 },
      methods: {
        'POST /orders': { concurrency: 5, holdUntil: 'handler' },
        'GET /orders/:id': { rate: fixedWindow, delivery: { key: 'tenant', maxOpenBodies: 1, stallTimeoutMs: 4 } },
      },
    },
  },
}

const ODD = [0, 1, -1, 1.5, 2 ** 31 - 1, 2 ** 31, 1e6, 1e6 + 1, 2 ** 40, 2 ** 41, '1', '', null, true, [], {}, 'body']

/** A copy in which that many settings are left out, added or replaced, often by what is not valid there. */
export function mutated(document: unknown, mutations: number, random: Random): unknown {
  const copy: unknown = JSON.parse(JSON.stringify(document))
  for (let left = mutations; left > 0; left -= 1) {
    let object = Object(copy)
    for (;;) {
      const keys = Object.keys(object)
      const key = keys[random(keys.length)] ?? 'extra'
      const below: unknown = object[key]
      if (typeof below === 'object' && below !== null && random(4) > 0) {
        object = below
        continue
      }
      const kind = random(4)
      if (kind === 0) delete object[key]
      else if (kind === 1)
        object[['extra', 'rate', 'concurrency', 'holdUntil'][random(4)] ?? ''] = ODD[random(ODD.length)]
      else object[key] = ODD[random(ODD.length)]
      break
    }
  }
  return copy
}

export function issuesOf(candidate: unknown, options?: ParseOptions): readonly ConfigIssue[] {
  try {
    parseConfig(candidate, options)
  } catch (error) {
    if (!(error instanceof AdmissionConfigError)) throw error
    expect(error.issues.length).toBeGreaterThan(0)
    return error.issues
  }
  return []
}

export function pointersOf(candidate: unknown, options?: ParseOptions): string[] {
  return issuesOf(candidate, options).map((issue) => issue.pointer)
}
