import { assert } from './assert.ts'

/** What a {@link Heap} keeps: the item itself knows its key and its place, so finding it costs nothing. */
export interface HeapItem {
  /** Smaller is nearer to the top. Changed only by {@link Heap.rekey} while in a heap; not NaN. */
  key: number
  /** The place in the heap, written by the heap alone; -1 when in none. */
  heapIndex: number
}

/**
 * A binary min-heap over items that carry their own place: any item can be removed or moved without a search.
 *
 * An item is in at most one heap. Ties come in any order. Nothing is allocated beyond the growth of one array, and
 * an item that left is no longer referred to.
 */
export class Heap<T extends HeapItem> {
  readonly #items: T[] // items[i].heapIndex === i; no key is less than the key at (i - 1) >> 1

  constructor() {
    this.#items = []
  }

  get size(): number {
    return this.#items.length
  }

  /** The item with the least key, O(1). */
  peek(): T | undefined {
    return this.#items[0]
  }

  /** Adds an item that is in no heap, O(log n); O(1) when its key is not below the others. */
  push(item: T): void {
    assert(item.heapIndex === -1, 'push of an item that is in a heap')
    assert(!Number.isNaN(item.key), 'push with a key that is not a number')
    this.#items.push(item)
    this.#rise(item, this.#items.length - 1)
  }

  /** Takes out an item of this heap, wherever it is, O(log n). */
  remove(item: T): void {
    const index = item.heapIndex
    assert(this.#items[index] === item, 'remove of an item that is not in this heap')
    item.heapIndex = -1
    const last = this.#items.pop()
    if (last !== undefined && last !== item) this.#settle(last, index)
  }

  /** Gives an item of this heap another key, O(log n). */
  rekey(item: T, key: number): void {
    assert(this.#items[item.heapIndex] === item, 'rekey of an item that is not in this heap')
    assert(!Number.isNaN(key), 'rekey to a key that is not a number')
    item.key = key
    this.#settle(item, item.heapIndex)
  }

  /** Visits exactly the items with `key <= maxKey`, in no particular order, O(visited). `fn` must not change the heap. */
  forEachUpTo(maxKey: number, fn: (item: T) => void): void {
    this.#visit(0, maxKey, fn)
  }

  // As deep as the heap is high: no stack to allocate, and none to overflow.
  #visit(index: number, maxKey: number, fn: (item: T) => void): void {
    const item = this.#items[index]
    if (item === undefined || !(item.key <= maxKey)) return
    fn(item)
    this.#visit(2 * index + 1, maxKey, fn)
    this.#visit(2 * index + 2, maxKey, fn)
  }

  #settle(item: T, index: number): void {
    const parent = index === 0 ? undefined : this.#items[(index - 1) >> 1]
    if (parent !== undefined && item.key < parent.key) this.#rise(item, index)
    else this.#sink(item, index)
  }

  #rise(item: T, from: number): void {
    let index = from
    while (index > 0) {
      const parentIndex = (index - 1) >> 1
      const parent = this.#items[parentIndex]
      if (parent === undefined || parent.key <= item.key) break
      this.#place(parent, index)
      index = parentIndex
    }
    this.#place(item, index)
  }

  #sink(item: T, from: number): void {
    let index = from
    for (;;) {
      let childIndex = 2 * index + 1
      let child = this.#items[childIndex]
      const right = this.#items[childIndex + 1]
      if (child !== undefined && right !== undefined && right.key < child.key) {
        child = right
        childIndex += 1
      }
      if (child === undefined || child.key >= item.key) break
      this.#place(child, index)
      index = childIndex
    }
    this.#place(item, index)
  }

  #place(item: T, index: number): void {
    this.#items[index] = item
    item.heapIndex = index
  }
}
