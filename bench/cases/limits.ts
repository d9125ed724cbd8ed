import type { Config, ConfigInput, QueueConfig, TokenBucketConfig } from '../../src/config/types.ts'

export const CONTRACT = '/orders'
export const METHOD = 'POST /orders'

/** More than is ever outstanding in a case that must find room. */
export const AMPLE = 1000

/** Leases or calls that are outstanding at any time, so that no compiler can do without them. */
export const OUTSTANDING = 64

export const ONE_SCOPE: ConfigInput = { global: { concurrency: AMPLE } }

export const THREE_SCOPES: ConfigInput = threeScopes(AMPLE)

export function threeScopes(limit: number, queue?: Partial<QueueConfig>): ConfigInput {
  return {
    ...(queue === undefined ? {} : { queue: { maxQueuedCalls: 200, ...queue } }),
    global: { concurrency: limit },
    contracts: { [CONTRACT]: { concurrency: limit, methods: { [METHOD]: { concurrency: limit } } } },
  }
}

/** A route of a Hono application, and limits on its three scopes. */
export const ROUTE_PATH = '/orders/list'

export function routeLimits(limit: number): ConfigInput {
  return {
    global: { concurrency: AMPLE },
    contracts: {
      [CONTRACT]: { concurrency: AMPLE, methods: { [`GET ${ROUTE_PATH}`]: { concurrency: limit } } },
    },
  }
}

/** A rate that no case reaches. */
export const AMPLE_BUCKET: TokenBucketConfig = {
  algorithm: 'token-bucket',
  tokenLimit: 1e6,
  tokensPerPeriod: 1e6,
  replenishmentPeriodMs: 1,
}

/** Rules that an update changes, where no more is said. */
export const CHANGED = 10

/** A document of as many rules as wanted, of the kinds that real ones have: methods in contracts of ten. */
export function manyRules(rules: number, changed = 0): ConfigInput {
  const contracts: { [id: string]: NonNullable<Config['contracts']>[string] } = {}
  for (let first = 0; first < rules; first += 10) {
    const methods: { [id: string]: { concurrency: number } } = {}
    for (let rule = first; rule < Math.min(rules, first + 10); rule += 1) {
      methods[`GET /area-${first}/thing-${rule}`] = { concurrency: rule < changed ? 60 : 50 + (rule % 7) }
    }
    contracts[`/area-${first}`] = { concurrency: 200, methods }
  }
  return { queue: { maxQueuedCalls: 200 }, global: { concurrency: 1000 }, contracts }
}
