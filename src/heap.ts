import { assert } from './assert.ts'

/** What a {@link Heap} keeps: the item itself knows its rank and its place, so finding it costs nothing. */
export interface HeapItem {
  /** Smaller is nearer to the top. Changed only by {@link Heap.rerank} while in a heap; not NaN. */
  rank: number
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
  readonly #items: T[] // items[i].heapIndex === i; no rank is less than the rank at (i - 1) >> 1

  constructor() {
    this.#items = []
  }

  get size(): number {
    return this.#items.length
  }

  /** The item with the least rank, O(1). */
  peek(): T | undefined {
    return this.#items[0]
  }

  /** Adds an item that is in no heap, O(log n); O(1) when its rank is not below the others. */
  push(item: T): void {
    assert(item.heapIndex === -1, 'push of an item that is in a heap')
    assert(!Number.isNaN(item.rank), 'push with a rank that is not a number')
    this.#items.push(item)
    this.#rise(item, this.#items.length - 1)
  }

  /** Takes out an item of this heap, wherever it is, O(log n). */
  remove(item: T): void {
    const index = item.heapIndex
    assert(this.#items[index] === item, 'remove of an item that is not in this heap')
    item.heapIndex = -1
    const last = this.#items.pop()
    if (last !== undefined && last !== item) this.#sift(last, index)
  }

  /** Gives an item of this heap another rank, O(log n). */
  rerank(item: T, rank: number): void {
    assert(this.#items[item.heapIndex] === item, 'rerank of an item that is not in this heap')
    assert(!Number.isNaN(rank), 'rerank to a rank that is not a number')
    item.rank = rank
    this.#sift(item, item.heapIndex)
  }

  /** Visits exactly the items with `rank <= maxRank`, in no particular order, O(visited). `fn` must not change the heap. */
  forEachUpTo(maxRank: number, fn: (item: T) => void): void {
    this.#visit(0, maxRank, fn)
  }

  // As deep as the heap is high: no stack to allocate, and none to overflow.
  #visit(index: number, maxRank: number, fn: (item: T) => void): void {
    const item = this.#items[index]
    if (item === undefined || !(item.rank <= maxRank)) return
    fn(item)
    this.#visit(2 * index + 1, maxRank, fn)
    this.#visit(2 * index + 2, maxRank, fn)
  }

  #sift(item: T, index: number): void {
    const parent = index === 0 ? undefined : this.#items[(index - 1) >> 1]
    if (parent !== undefined && item.rank < parent.rank) this.#rise(item, index)
    else this.#sink(item, index)
  }

  #rise(item: T, from: number): void {
    let index = from
    while (index > 0) {
      const parentIndex = (index - 1) >> 1
      const parent = this.#items[parentIndex]
      if (parent === undefined || parent.rank <= item.rank) break
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
      if (child !== undefined && right !== undefined && right.rank < child.rank) {
        child = right
        childIndex += 1
      }
      if (child === undefined || child.rank >= item.rank) break
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
