import type {
  Config,
  ContractConfig,
  MethodConfig,
  PartitionConfig,
  QueueConfig,
  RateConfig,
} from '../../src/config/types.ts'
import type { Random } from '../support/random.ts'

/** One step of a random program: plain data that means the same whatever came before, so that steps can be left out. */
export type Op =
  | {
      readonly op: 'admit'
      readonly contract: string | undefined
      readonly method: string | undefined
      readonly oneWay: boolean
      readonly bodiless: boolean
      readonly bytes: number | 'unknown'
      readonly keys: { readonly [selector: string]: string | undefined }
      readonly keyed: 'record' | 'function' | 'selectors'
      readonly signal: 'none' | 'signal' | 'function' | 'aborted' | 'lateAborted'
      readonly bound: boolean
      readonly times: number
    }
  | {
      readonly op: 'release' | 'releaseOldest' | 'releasePermits' | 'releaseAgain' | 'abort' | 'abortAnswered'
      readonly pick: number
    }
  | { readonly op: 'releaseOf'; readonly method: string | undefined } // the oldest that runs
  | { readonly op: 'advance'; readonly ms: number; readonly stepwise: boolean }
  | { readonly op: 'goBack'; readonly ms: number }
  | { readonly op: 'update'; readonly config: Config; readonly how: 'plain' | 'builder' | 'async' | 'stale' | 'throws' }
  | {
      readonly op: 'race'
      readonly config: Config
      readonly other: Config
      readonly against: 'update' | 'disable' | 'reenable'
    }
  | { readonly op: 'enable'; readonly config: Config }
  | { readonly op: 'plan'; readonly config: Config }
  | { readonly op: 'drain'; readonly announceMs: number }
  | { readonly op: 'disable' | 'resume' | 'stop' | 'snapshot' | 'track' | 'untrack' }

export interface Script {
  readonly profile: Profile
  readonly ops: readonly Op[]
}

// biome-ignore format: one line for each half
const PROFILES = [
  'mixed', 'starve', 'rates', 'mixed', 'partitions', 'paused', 'churn', 'mixed', 'starve',
  'mixed', 'rates', 'churn', 'partitions', 'starve', 'mixed', 'paused', 'mixed', 'batch',
] as const
export type Profile = (typeof PROFILES)[number]

/** The program of a seed: its kind is the seed's remainder, so that any run of seeds has some of each. */
export function scriptOf(seed: number, steps: number, random: Random): Script {
  const profile = PROFILES[seed % PROFILES.length] ?? 'mixed'
  const lengths = { starve: 2 * steps, batch: Math.min(20, steps) }
  const length = profile === 'starve' || profile === 'batch' ? lengths[profile] : steps
  return { profile, ops: new Author(profile, random).write(length) }
}

const METHODS = ['m1', 'm2']
const TENANTS = ['t1', 't2', 't3']

/** What updates cannot change: rates and partitions, by scope. */
interface Shape {
  readonly global: MethodConfig
  readonly contracts: {
    readonly [id: string]: { readonly own: MethodConfig; readonly methods: { readonly [id: string]: MethodConfig } }
  }
}

class Author {
  readonly #profile: Profile
  readonly #random: Random
  readonly #tenantPermits: number
  readonly #crossingRate: RateConfig | undefined
  readonly #isStuck: boolean // the tenant's permit stays where it is
  #shape: Shape
  #crossing: string | undefined // the method that takes turns now; undefined: the tenant

  constructor(profile: Profile, random: Random) {
    this.#profile = profile
    this.#random = random
    this.#tenantPermits = random(4) === 0 ? 2 : 1
    this.#crossingRate = random(3) === 0 ? this.#rate() : undefined
    this.#isStuck = random(100) < 40
    this.#shape = this.#newShape()
    this.#crossing = undefined
  }

  write(steps: number): Op[] {
    const first = this.#config()
    // Few permits at first, so that a batch of waiters comes together.
    const config =
      this.#profile === 'batch'
        ? { ...first, queue: this.#longQueue(), global: { ...first.global, concurrency: 5 } }
        : first
    const ops: Op[] = [{ op: 'enable', config }]
    const next = { starve: () => this.#starve(ops.length), batch: () => this.#batch(ops.length) }
    const profile = this.#profile
    while (ops.length < steps) ops.push(profile === 'starve' || profile === 'batch' ? next[profile]() : this.#op())
    return ops
  }

  #chance(percent: number): boolean {
    return this.#random(100) < percent
  }

  #of<T>(first: T, ...others: readonly T[]): T {
    const index = this.#random(others.length + 1)
    return index === 0 ? first : (others[index - 1] ?? first)
  }

  #newShape(): Shape {
    const contracts: { [id: string]: { own: MethodConfig; methods: { [id: string]: MethodConfig } } } = {}
    for (const id of ['/a', '/b']) {
      const methods: { [id: string]: MethodConfig } = {}
      for (const method of METHODS) methods[method] = this.#fixed(1)
      contracts[id] = { own: this.#fixed(1), methods }
    }
    return { global: this.#fixed(2), contracts }
  }

  #fixed(weight: number): MethodConfig {
    const rates = { mixed: 8, starve: 0, rates: 30, partitions: 8, paused: 0, churn: 10, batch: 4 }[this.#profile]
    const pools = { mixed: 12, starve: 0, rates: 15, partitions: 40, paused: 10, churn: 10, batch: 4 }[this.#profile]
    const partitions: { [selector: string]: PartitionConfig } = {}
    if (this.#chance(weight * pools)) partitions.tenant = this.#partition()
    if (this.#chance((weight * pools) / 4)) partitions.user = this.#partition()
    return {
      ...(this.#chance(weight * rates) ? { rate: this.#rate() } : {}),
      ...(Object.keys(partitions).length > 0 ? { partitions } : {}),
    }
  }

  #rate(): RateConfig {
    const permitLimit = 1 + this.#random(3)
    const windowMs = 1 + this.#random(this.#chance(50) ? 6 : 25)
    return this.#of<() => RateConfig>(
      () => ({
        algorithm: 'token-bucket',
        tokenLimit: permitLimit,
        tokensPerPeriod: 1 + this.#random(4),
        replenishmentPeriodMs: windowMs,
      }),
      () => ({ algorithm: 'fixed-window', permitLimit, windowMs }),
      () => ({
        algorithm: 'sliding-window',
        permitLimit,
        windowMs,
        segmentsPerWindow: 1 + this.#random(Math.min(windowMs, 5)),
      }),
    )()
  }

  #partition(): PartitionConfig {
    const hasRate = this.#chance(40)
    return {
      maxPartitions: 1 + this.#random(4),
      idleTimeoutMs: this.#of(1, 10, 40, 1000),
      onPartitionLimit: this.#of('evict', 'evict', 'refuse'),
      ...(!hasRate || this.#chance(50) ? { concurrency: 1 + this.#random(2) } : {}),
      ...(hasRate ? { rate: this.#rate() } : {}),
    }
  }

  /** The shape with fresh limits, queue and deliveries. */
  #config(): Config {
    if (this.#profile === 'starve') return this.#crossed()
    const contracts: { [id: string]: ContractConfig } = {}
    for (const [id, { own, methods: shapes }] of Object.entries(this.#shape.contracts)) {
      const methods: { [id: string]: MethodConfig } = {}
      for (const [name, fixed] of Object.entries(shapes)) {
        if (isEmpty(fixed) && this.#chance(20)) continue
        methods[name] = { ...fixed, ...this.#limit(50, 30), ...this.#delivery(10) }
      }
      const contract = { ...own, ...this.#limit(50, 30), ...this.#delivery(10), methods }
      if (isEmpty(own) && Object.values(shapes).every(isEmpty) && this.#chance(10)) continue
      contracts[id] = contract
    }
    const queue = this.#queue()
    return {
      ...(queue === undefined ? {} : { queue }),
      global: { ...this.#shape.global, ...this.#limit(60, 100) },
      contracts,
    }
  }

  /** A limit by tenant across limits by method; a waiter lives long enough to be passed often. */
  #crossed(): Config {
    const tenant: PartitionConfig = {
      maxPartitions: 10,
      idleTimeoutMs: 1000,
      onPartitionLimit: 'evict',
      concurrency: this.#tenantPermits,
    }
    return {
      queue: {
        maxQueuedCalls: 12,
        maxQueuedBytes: 1000,
        maxQueueDelayMs: 100_000,
        queueOneWayCalls: true,
        unknownBodyBytes: 1,
      },
      global: { partitions: { tenant }, ...(this.#chance(20) ? { concurrency: 3 + this.#random(4) } : {}) },
      contracts: {
        '/a': {
          ...(this.#chance(20) ? { concurrency: 3 + this.#random(4) } : {}),
          methods: {
            m1: this.#crossingRate === undefined ? { concurrency: this.#of(1, 1, 1, 2) } : { rate: this.#crossingRate },
            m2: { concurrency: 1 },
          },
        },
      },
    }
  }

  #limit(percent: number, batchPercent: number): { concurrency?: number } {
    if (this.#profile === 'batch') return this.#chance(batchPercent) ? { concurrency: this.#of(0, 5, 600, 2000) } : {}
    if (!this.#chance(percent)) return {}
    const isPaused = this.#chance(this.#profile === 'paused' ? 35 : 5)
    return { concurrency: isPaused ? 0 : 1 + this.#random(this.#profile === 'rates' ? 5 : 3) }
  }

  #delivery(percent: number): MethodConfig {
    if (this.#profile === 'starve' || this.#profile === 'batch' || !this.#chance(percent)) return {}
    return { delivery: { key: 'client', maxOpenBodies: 1 + this.#random(2), stallTimeoutMs: 1000 } }
  }

  #queue(): QueueConfig | undefined {
    if (this.#profile === 'batch') return this.#chance(15) ? undefined : this.#longQueue()
    return this.#chance(8) ? undefined : this.#queueConfig()
  }

  #longQueue(): QueueConfig {
    return { ...this.#queueConfig(), maxQueuedCalls: 2000, maxQueueDelayMs: this.#of(5, 500), maxQueuedBytes: 1e6 }
  }

  #queueConfig(): QueueConfig {
    return {
      maxQueuedCalls: this.#chance(4) ? 0 : this.#of(1, 2, 4, 8, 20),
      maxQueuedBytes: this.#chance(4) ? 0 : this.#of(5, 12, 30, 1000),
      maxQueueDelayMs: this.#chance(4) ? 0 : this.#of(1, 5, 20, 20, 50, 200),
      queueOneWayCalls: this.#chance(50),
      unknownBodyBytes: 1 + this.#random(7),
    }
  }

  #admit(times: number): Op {
    const isOdd = this.#chance(4)
    return {
      op: 'admit',
      contract: this.#of('/a', '/a', '/b', isOdd ? '/other' : undefined),
      method: this.#of('m1', 'm2', isOdd ? '__proto__' : undefined),
      oneWay: this.#chance(15),
      bodiless: this.#chance(20),
      bytes: this.#of<number | 'unknown'>(0, 0, 1, 4, 9, 'unknown'),
      keys: {
        tenant: this.#chance(15) ? undefined : this.#of('t1', ...TENANTS, `t${this.#random(8)}`),
        user: this.#of(undefined, '', 'u'),
        client: this.#of(undefined, '', 'c', 'd'),
      },
      keyed: this.#of('record', 'function', 'selectors'),
      signal: this.#chance(3) ? this.#of('aborted', 'lateAborted') : this.#of('none', 'signal', 'function'),
      bound: this.#chance(30),
      times,
    }
  }

  #op(): Op {
    const pick = this.#random(1000)
    const roll = this.#random(100)
    const isChurn = this.#profile === 'churn' || this.#profile === 'paused'
    if (roll < 38) return this.#admit(1)
    if (roll < 58) return { op: this.#of('release', 'release', 'release', 'releaseOldest', 'releasePermits'), pick }
    if (roll < 60) return { op: 'releaseAgain', pick }
    if (roll < 64) return { op: 'abort', pick }
    if (roll < 65) return { op: 'abortAnswered', pick }
    if (roll < 80) return { op: 'advance', ms: this.#of(0, 1, 1, 2, 3, 5, 8, 20, 0.5, 60), stepwise: this.#chance(50) }
    if (roll < 81) return { op: 'goBack', ms: this.#of(1, 5, 100) }
    if (roll < 91 || isChurn) return this.#write()
    if (roll < 93) return { op: 'snapshot' }
    if (roll < 94) return { op: this.#of('track', 'untrack') }
    return this.#admit(1)
  }

  #write(): Op {
    const roll = this.#random(100)
    const config = this.#config()
    if (roll < 62)
      return { op: 'update', config, how: this.#of('plain', 'plain', 'builder', 'async', 'stale', 'throws') }
    if (roll < 70)
      return { op: 'race', config, other: this.#config(), against: this.#of('update', 'disable', 'reenable') }
    if (roll < 74) {
      // Other rates and partitions: refused while enabled.
      const shape = this.#shape
      this.#shape = this.#newShape()
      const changed = this.#config()
      if (this.#chance(70)) this.#shape = shape
      return { op: this.#of('update', 'plan'), config: changed, how: 'plain' }
    }
    if (roll < 77) return { op: 'plan', config }
    if (roll < 83) return { op: 'disable' }
    if (roll < 94) return { op: 'enable', config }
    if (roll < 95 && this.#chance(30)) return { op: 'stop' }
    if (roll < 96) return { op: 'drain', announceMs: this.#of(0, 5, 30) }
    return { op: 'resume' }
  }

  /** Two scopes that cross: calls of either take turns to pass those that need both (ADM-6). */
  #starve(step: number): Op {
    const fill = [undefined, 'm1', 'm2']
    if (step < 4) return this.#quiet('/a', fill[step - 1], step === 1 ? 't1' : undefined, 1)
    const roll = this.#random(100)
    if (roll < 1) return this.#admit(1)
    if (roll < 2) return { op: this.#of('release', 'abort'), pick: this.#random(1000) }
    if (roll < 3) return { op: 'advance', ms: this.#of(0, 1, 2), stepwise: false }
    if (roll < 4) return { op: 'update', config: this.#config(), how: 'plain' }
    if (step % 12 === 2 && this.#crossingRate !== undefined) {
      return { op: 'advance', ms: this.#of(1, 5, 25), stepwise: false }
    }
    const method = this.#of('m1', 'm2')
    if (step % 40 === 5) return this.#quiet('/a', method, 't1', 1)
    // One scope or the other: a call leaves, the next comes (before or after that), while those that need two wait.
    if (step % 2 === 0) this.#crossing = this.#of('m1', 'm1', 'm2', ...(this.#isStuck ? [] : [undefined, undefined]))
    const comesFirst = step % 40 > 25
    if (step % 2 === (comesFirst ? 1 : 0)) return { op: 'releaseOf', method: this.#crossing }
    return this.#quiet('/a', this.#crossing, this.#crossing === undefined ? 't1' : this.#of('t2', 't3', undefined), 1)
  }

  /** More waiters than one turn may start (QUE-11). */
  #batch(step: number): Op {
    const roll = this.#random(100)
    const tenant = this.#of('t1', 't2')
    if (step < 3 || roll < 3) return this.#quiet('/a', this.#of('m1', 'm1', undefined), tenant, this.#of(270, 300))
    if (roll < 35) return this.#quiet('/a', this.#of('m1', undefined), tenant, this.#of(1, 1, 2, 10))
    if (roll < 60) return { op: 'update', config: this.#config(), how: 'plain' }
    if (roll < 80) return { op: 'advance', ms: this.#of(0, 0, 1, 5), stepwise: this.#chance(50) }
    return this.#op()
  }

  #quiet(contract: string, method: string | undefined, tenant: string | undefined, times: number): Op {
    const call = this.#admit(times)
    if (call.op !== 'admit') return call
    return {
      ...call,
      contract,
      method,
      keys: { tenant },
      oneWay: false,
      bytes: 0,
      signal: times > 2 ? 'none' : 'signal',
    }
  }
}

function isEmpty(config: MethodConfig): boolean {
  return config.rate === undefined && config.partitions === undefined
}
