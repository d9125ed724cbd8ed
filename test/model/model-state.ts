import type { PartitionConfig, RateConfig } from '../../src/config/types.ts'
import type { RefusalReason } from '../../src/refusal.ts'
import { NaiveRate } from './naive-rate.ts'

/** One thing of which a call needs one: a permit, a rate permit, a place among the open bodies of a key. */
export interface Need {
  readonly scope: string
  readonly reason: RefusalReason
  readonly timed: boolean
  hasRoom(nowMs: number, ahead: number): boolean
  /** Of rates: the wait with everybody ahead; Infinity where time alone brings no room. */
  msUntilRoom(nowMs: number, ahead: number): number
  take(nowMs: number): void
  /** Rates give nothing back. */
  giveBack(): void
}

/** Permits: a number that is active, and a number it must not exceed. */
export class Permits implements Need {
  readonly scope: string
  readonly reason: RefusalReason
  readonly timed: false
  limit: number
  active: number
  named: boolean

  constructor(scope: string, reason: RefusalReason, limit: number) {
    this.scope = scope
    this.reason = reason
    this.timed = false
    this.limit = limit
    this.active = 0
    this.named = true
  }

  hasRoom(_nowMs: number, ahead: number): boolean {
    return this.active + ahead < this.limit
  }

  msUntilRoom(nowMs: number, ahead: number): number {
    return this.hasRoom(nowMs, ahead) ? 0 : Number.POSITIVE_INFINITY
  }

  take(): void {
    if (this.active >= this.limit) throw new Error(`The model takes a permit of ${this.scope} without room`)
    this.active += 1
  }

  giveBack(): void {
    if (this.active === 0) throw new Error(`The model gives back a permit of ${this.scope} that nobody holds`)
    this.active -= 1
  }
}

export class RateNeed implements Need {
  readonly scope: string
  readonly reason: RefusalReason
  readonly timed: true
  readonly rate: NaiveRate
  named: boolean

  constructor(scope: string, reason: RefusalReason, config: RateConfig, nowMs: number) {
    this.scope = scope
    this.reason = reason
    this.timed = true
    this.rate = new NaiveRate(config, nowMs)
    this.named = true
  }

  hasRoom(nowMs: number, ahead: number): boolean {
    return this.rate.free(nowMs) > ahead
  }

  msUntilRoom(nowMs: number, ahead: number): number {
    return this.rate.msUntilRoom(nowMs, ahead)
  }

  take(nowMs: number): void {
    this.rate.take(nowMs)
  }

  giveBack(): void {}
}

/** One key of a pool. */
export class Entry {
  readonly pool: Pool
  readonly key: string
  readonly permits: Permits | undefined
  readonly rate: RateNeed | undefined
  users: number // calls that run or wait
  usedAtMs: number

  constructor(pool: Pool, key: string, nowMs: number) {
    const { concurrency, rate } = pool.config
    this.pool = pool
    this.key = key
    this.permits = concurrency === undefined ? undefined : new Permits(pool.scope, 'partition_concurrency', concurrency)
    this.rate = rate === undefined ? undefined : new RateNeed(pool.scope, 'partition_rate', rate, nowMs)
    this.users = 0
    this.usedAtMs = nowMs
  }

  /** From when on a new entry would behave the same. */
  get freeAtMs(): number {
    return Math.max(this.usedAtMs, this.rate?.rate.cleanAtMs() ?? 0)
  }

  get needs(): Need[] {
    return [this.permits, this.rate].filter((need) => need !== undefined)
  }
}

/** Ends a program whose further course the specification leaves open. */
export class Undecided extends Error {}

/** A plain map of keys, at most `maxPartitions` of them (PAR-1, PAR-2, PAR-4). */
export class Pool {
  readonly scope: string
  readonly selector: string
  readonly config: PartitionConfig
  readonly entries: Map<string, Entry>
  named: boolean

  constructor(scope: string, selector: string, config: PartitionConfig) {
    this.scope = scope
    this.selector = selector
    this.config = config
    this.entries = new Map()
    this.named = true
  }

  find(key: string, nowMs: number): Entry {
    return this.entries.get(key) ?? new Entry(this, key, nowMs)
  }

  canHold(key: string, nowMs: number): boolean {
    if (this.entries.has(key) || this.entries.size < this.config.maxPartitions) return true
    return this.#victims(nowMs).length > 0
  }

  enter(entry: Entry, nowMs: number): void {
    entry.users += 1
    entry.usedAtMs = nowMs
    if (this.entries.has(entry.key)) return
    this.forget(nowMs - this.config.idleTimeoutMs)
    if (this.entries.size >= this.config.maxPartitions) {
      const [victim, ...equals] = this.#victims(nowMs)
      if (victim === undefined) throw new Error('The model finds no room for an entry')
      const isLikeNew = victim.freeAtMs <= nowMs && this.config.rate?.algorithm === 'token-bucket'
      // Any of several with the same debt may go, and who it was shows once its key comes again.
      if (equals.length > 0 && this.config.rate !== undefined && !isLikeNew) throw new Undecided('equal debts')
      this.entries.delete(victim.key)
    }
    this.entries.set(entry.key, entry)
  }

  forget(untilMs: number): void {
    for (const entry of this.entries.values()) {
      if (entry.users === 0 && entry.freeAtMs <= untilMs) this.entries.delete(entry.key)
    }
  }

  /** The idle entry with the least remaining debt, and those with as little. */
  #victims(nowMs: number): Entry[] {
    const idle = [...this.entries.values()].filter((entry) => entry.users === 0)
    const leastMs = Math.min(...idle.map((entry) => entry.freeAtMs))
    if (leastMs > nowMs && this.config.onPartitionLimit === 'refuse') return []
    return idle.filter((entry) => entry.freeAtMs === leastMs)
  }
}

/** Open bodies of one key (REL-3). */
export class Place implements Need {
  readonly places: Places
  readonly key: string
  readonly scope: string
  readonly reason: RefusalReason
  readonly timed: false
  open: number

  constructor(places: Places, key: string) {
    this.places = places
    this.key = key
    this.scope = places.scope
    this.reason = 'delivery'
    this.timed = false
    this.open = 0
  }

  hasRoom(_nowMs: number, ahead: number): boolean {
    return this.open + ahead < this.places.maxOpenBodies
  }

  msUntilRoom(nowMs: number, ahead: number): number {
    return this.hasRoom(nowMs, ahead) ? 0 : Number.POSITIVE_INFINITY
  }

  take(): void {
    this.open += 1
  }

  giveBack(): void {
    this.open -= 1
  }
}

export class Places {
  readonly scope: string
  readonly selector: string
  maxOpenBodies: number
  readonly keys: Map<string, Place>

  constructor(scope: string, selector: string, maxOpenBodies: number) {
    this.scope = scope
    this.selector = selector
    this.maxOpenBodies = maxOpenBodies
    this.keys = new Map()
  }

  find(key: string): Place {
    const place = this.keys.get(key) ?? new Place(this, key)
    this.keys.set(key, place) // without a bound an entry that is empty is like none
    return place
  }
}
