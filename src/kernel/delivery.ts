import { assert } from '../assert.ts'
import type { Resource } from './resource.ts'
import type { Scope } from './scope.ts'

/** The open bodies of one key. In its places while a body is open or a waiter needs one; it has no history to keep. */
export class DeliveryKey implements Resource {
  readonly places: DeliveryPlaces
  readonly id: string // the key that the selector returned
  readonly scope: Scope
  readonly reason: 'delivery'
  waiting: number
  line: object | null
  kept: 0 | 1
  open: number // streamed bodies, ≥ 0
  users: number // open bodies and waiters, ≥ 0

  constructor(places: DeliveryPlaces, id: string) {
    this.places = places
    this.id = id
    this.scope = places.scope
    this.reason = 'delivery'
    this.waiting = 0
    this.line = null
    this.kept = 0
    this.open = 0
    this.users = 0
  }

  get timed(): false {
    return false
  }

  msUntilRoom(_nowMs: number, ahead: number): number {
    return this.open + ahead < this.places.maxOpenBodies ? 0 : Number.POSITIVE_INFINITY
  }

  take(): void {
    assert(this.open < this.places.maxOpenBodies, 'a body is opened without room')
    this.open += 1
  }

  /** A body has ended, or never was one. */
  close(): void {
    assert(this.open > 0, 'a body is closed that nobody opened')
    this.open -= 1
    this.places.leave(this)
  }
}

/**
 * Streamed response bodies that are still open, by key: what a slow reader costs, apart from permits (REL-3).
 *
 * Keyed by scope and selector; the bound is live, as with concurrency: a shrink closes no body. Memory is bounded by
 * open bodies and waiters.
 */
export class DeliveryPlaces {
  readonly scope: Scope
  readonly selector: string
  maxOpenBodies: number // per key, ≥ 1
  readonly #keys: Map<string, DeliveryKey>
  /** As for concurrency: does the current program name it? */
  named: boolean

  constructor(scope: Scope, selector: string, maxOpenBodies: number) {
    this.scope = scope
    this.selector = selector
    this.maxOpenBodies = maxOpenBodies
    this.#keys = new Map()
    this.named = false
  }

  get size(): number {
    return this.#keys.size
  }

  keys(): Iterable<DeliveryKey> {
    return this.#keys.values()
  }

  /** The entry of a key, or one that is not kept yet: asking creates nothing. */
  find(id: string): DeliveryKey {
    return this.#keys.get(id) ?? new DeliveryKey(this, id)
  }

  /** One more body or waiter of the key. */
  enter(key: DeliveryKey): void {
    key.users += 1
    this.#keys.set(key.id, key)
  }

  leave(key: DeliveryKey): void {
    assert(key.users > 0, 'a delivery key is left that nobody is in')
    key.users -= 1
    if (key.users === 0) this.#keys.delete(key.id)
  }
}
