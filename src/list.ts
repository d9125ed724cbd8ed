import { assert } from './assert.ts'

/**
 * What a {@link List} keeps: the item carries its own links, all null while it is in no list. No base class, for the
 * constructor of a derived one is a call of its own (`queue.release`).
 */
export interface ListItem<T extends ListItem<T>> {
  list: List<T> | null
  previous: T | null
  next: T | null
}

/**
 * A first-in, first-out list whose items carry their own links, so that one in the middle leaves in O(1) (QUE-7).
 * An item is in at most one list at a time; removing it twice is harmless.
 */
export class List<T extends ListItem<T>> {
  #first: T | null
  #last: T | null

  constructor() {
    this.#first = null
    this.#last = null
  }

  get first(): T | null {
    return this.#first
  }

  get isEmpty(): boolean {
    return this.#first === null
  }

  /** O(1). */
  append(item: T): void {
    assert(item.list === null, 'an item is appended while in a list')
    item.list = this
    item.previous = this.#last
    if (this.#last === null) this.#first = item
    else this.#last.next = item
    this.#last = item
  }

  /** Unlinks the item if it is in this list; says whether it was. O(1). */
  remove(item: T): boolean {
    if (item.list !== this) return false
    if (item.previous === null) this.#first = item.next
    else item.previous.next = item.next
    if (item.next === null) this.#last = item.previous
    else item.next.previous = item.previous
    item.list = null
    item.previous = null
    item.next = null
    return true
  }
}
