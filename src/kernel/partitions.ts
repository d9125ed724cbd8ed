import { assert } from '../assert.ts'
import type { PartitionConfig } from '../config/types.ts'
import { Heap, type HeapItem } from '../heap.ts'
import type { RefusalReason } from '../refusal.ts'
import { Concurrency, UNLIMITED } from './concurrency.ts'
import type { Scope } from './scope.ts'
import { ScopedRate } from './scoped-rate.ts'

/** How many stale places a sweep sets right, and a look for a victim before it takes a free one out of order. Entries. */
const MAX_STALE = 64

/**
 * The limits of one key. Busy while a call runs or waits in it; a busy one is never removed.
 *
 * It is its own concurrency, for a second object is a second cache line for every call (`core.partition`).
 */
export class Partition extends Concurrency implements HeapItem {
  readonly pool: PartitionPool
  readonly rate: ScopedRate | null
  users: number // calls that run or wait, ≥ 0
  usedAtMs: number // newest admission or enqueue
  heapIndex: number
  rank: number // a lower bound of freeAtMs, brought up to date when it matters
  readonly id: string // the key that the selector returned

  constructor(pool: PartitionPool, id: string, nowMs: number) {
    const { concurrency, rate } = pool.config
    super(pool.scope, concurrency ?? UNLIMITED)
    this.pool = pool
    this.rate = rate === undefined ? null : new ScopedRate(pool.scope, 'partition_rate', rate, nowMs)
    this.users = 0
    this.usedAtMs = nowMs
    this.heapIndex = -1
    this.rank = nowMs
    this.id = id
  }

  override get reason(): RefusalReason {
    return 'partition_concurrency'
  }

  /** Itself, if the pool limits it. */
  get concurrency(): Concurrency | null {
    return this.limit === UNLIMITED ? null : this
  }

  /** A call starts in it. The caller has seen room for a permit and, if it has a rate, for one of that. */
  start(nowMs: number): void {
    this.take() // also where the pool has no limit, so that there is no branch for it
    this.rate?.take(nowMs)
    this.usedAtMs = nowMs
  }

  /** From when on a new entry would behave the same, if this one is left alone: unused, and free of rate debt. */
  get freeAtMs(): number {
    return this.rate === null ? this.usedAtMs : Math.max(this.usedAtMs, this.rate.rate.cleanAtMs())
  }
}

/**
 * The partitions of one scope and selector: one entry per key, at most `maxPartitions` of them, swept on use.
 *
 * Every entry is in the heap, ordered by a lower bound of the instant at which it may be forgotten, except busy ones
 * that a sweep or a look for a victim came across; those come back when they fall idle. A hit therefore only stamps the entry.
 * The heap's least entry is the oldest that can go without loss (PAR-2), or else the one with the least debt (PAR-4).
 */
export class PartitionPool {
  readonly scope: Scope
  readonly selector: string
  readonly config: PartitionConfig
  readonly #partitions: Map<string, Partition>
  readonly #forgettable: Heap<Partition>
  /** As {@link Concurrency.named}. */
  named: boolean

  constructor(scope: Scope, selector: string, config: PartitionConfig) {
    this.scope = scope
    this.selector = selector
    this.config = config
    this.#partitions = new Map()
    this.#forgettable = new Heap()
    this.named = false
  }

  get size(): number {
    return this.#partitions.size
  }

  values(): Iterable<Partition> {
    return this.#partitions.values()
  }

  /** The entry of a key, or one that is not in the pool yet: asking creates and evicts nothing (PAR-4). */
  find(id: string, nowMs: number): Partition {
    return this.#partitions.get(id) ?? new Partition(this, id, nowMs)
  }

  /** The entry of a key, if a call that nobody waits before may start in it now. Enters nothing. */
  findRoomy(id: string, nowMs: number): Partition | undefined {
    const partition = this.find(id, nowMs)
    if (!partition.hasRoom) return undefined
    const { rate } = partition
    if (rate !== null && rate.msUntilRoom(nowMs, 0) > 0) return undefined
    return this.canHold(partition, nowMs) ? partition : undefined
  }

  /** May this entry be used: is it in the pool, or can room be made for it? */
  canHold(partition: Partition, nowMs: number): boolean {
    return partition.heapIndex !== -1 || this.#canAdd(partition, nowMs)
  }

  /** The same for one that is not in the heap, which an entry may be while it is busy. Apart, being rare (`core.partition`). */
  #canAdd(partition: Partition, nowMs: number): boolean {
    if (this.#partitions.size < this.config.maxPartitions) return true
    return this.#partitions.get(partition.id) === partition || this.#victim(nowMs) !== undefined
  }

  /** One more call runs or waits in the entry, which moves into the pool if it is new. After {@link canHold}. */
  enter(partition: Partition, nowMs: number): void {
    partition.users += 1
    partition.usedAtMs = nowMs
    if (partition.heapIndex === -1) this.#addIfNew(partition, nowMs)
  }

  // Apart, as `#canAdd` is: a warm entry is in the heap.
  #addIfNew(partition: Partition, nowMs: number): void {
    if (this.#partitions.get(partition.id) === partition) return
    this.sweep(nowMs, MAX_STALE)
    if (this.#partitions.size >= this.config.maxPartitions) {
      const victim = this.#victim(nowMs)
      assert(victim !== undefined, 'a partition enters a pool in which nothing can make room')
      this.#remove(victim)
    }
    partition.rank = nowMs
    this.#partitions.set(partition.id, partition)
    this.#forgettable.push(partition)
  }

  leave(partition: Partition): void {
    assert(partition.users > 0, 'a partition is left that nobody is in')
    partition.users -= 1
    if (partition.users === 0 && partition.heapIndex === -1) {
      partition.rank = partition.usedAtMs
      this.#forgettable.push(partition)
    }
  }

  /** Forgets entries that had neither calls nor debt for `idleTimeoutMs` (PAR-1). At most `steps` looks. */
  sweep(nowMs: number, steps: number): void {
    this.#removeFree(nowMs - this.config.idleTimeoutMs, steps)
  }

  /** Forgets every entry that a new one would behave like; for a pool that no program names any more (RAT-4). */
  shed(nowMs: number): void {
    this.#removeFree(nowMs, Number.POSITIVE_INFINITY)
  }

  #removeFree(untilMs: number, steps: number): void {
    for (let step = 0; step < steps; step += 1) {
      const least = this.#forgettable.peek()
      if (least === undefined || least.rank > untilMs) return
      if (this.#refresh(least) && least.rank <= untilMs) this.#remove(least)
    }
  }

  /** The entry that makes room at the bound; undefined: all are busy, or only entries in debt could and must not. */
  #victim(nowMs: number): Partition | undefined {
    for (let step = 0; ; step += 1) {
      const least = this.#forgettable.peek()
      if (least === undefined) return undefined
      const before = least.rank
      if (!this.#refresh(least)) continue
      const isLeast = least.rank === before || this.#forgettable.peek() === least
      const isFree = least.rank <= nowMs
      if (!isLeast && !(isFree && step >= MAX_STALE)) continue
      return isFree || this.config.onPartitionLimit === 'evict' ? least : undefined
    }
  }

  /** Brings an entry's place in the heap up to date; a busy one leaves it until it falls idle. Says whether it stayed. */
  #refresh(partition: Partition): boolean {
    if (partition.users > 0) {
      this.#forgettable.remove(partition)
      return false
    }
    const { freeAtMs } = partition
    if (freeAtMs > partition.rank) this.#forgettable.rerank(partition, freeAtMs)
    return true
  }

  #remove(partition: Partition): void {
    assert(partition.users === 0, 'a busy partition is removed')
    this.#forgettable.remove(partition)
    this.#partitions.delete(partition.id)
  }
}
