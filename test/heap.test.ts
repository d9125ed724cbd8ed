import { describe, expect, it } from 'vitest'
import { Heap, type HeapItem } from '../src/heap.ts'
import { randomFrom } from './support/random.ts'

const item = (rank: number): HeapItem => ({ rank, heapIndex: -1 })

const drain = (heap: Heap<HeapItem>): number[] => {
  const ranks: number[] = []
  for (let top = heap.peek(); top !== undefined; top = heap.peek()) {
    ranks.push(top.rank)
    heap.remove(top)
  }
  return ranks
}

const heapOf = (...items: HeapItem[]): Heap<HeapItem> => {
  const heap = new Heap<HeapItem>()
  for (const each of items) heap.push(each)
  return heap
}

describe('Heap', () => {
  it('gives the least rank first, whatever the order of arrival', () => {
    expect(drain(heapOf(...[5, 1, 4, 1, 3, -2, 9].map(item)))).toEqual([-2, 1, 1, 3, 4, 5, 9])
  })

  it('has nothing to give when it is empty', () => {
    const heap = new Heap()
    expect(heap.size).toBe(0)
    expect(heap.peek()).toBeUndefined()
    heap.forEachUpTo(Number.POSITIVE_INFINITY, () => expect.unreachable())
  })

  it('removes an item from the middle and leaves it free for another heap', () => {
    const middle = item(3)
    const heap = heapOf(item(1), middle, item(2), item(4))
    heap.remove(middle)
    expect(middle.heapIndex).toBe(-1)
    heapOf(item(0)).push(middle)
    expect(drain(heap)).toEqual([1, 2, 4])
  })

  it('keeps the order when the item that fills a gap belongs above it', () => {
    const leaf = item(11)
    const heap = heapOf(item(0), item(10), item(1), leaf, item(12), item(2), item(3))
    heap.remove(leaf) // its place goes to the last item, 3, whose new parent is 10
    expect(drain(heap)).toEqual([0, 1, 2, 3, 10, 12])
  })

  it('moves a reranked item up and down', () => {
    const moved = item(5)
    const heap = heapOf(item(1), item(2), moved, item(9))
    heap.rerank(moved, 0)
    expect(heap.peek()).toBe(moved)
    heap.rerank(moved, 8)
    expect(drain(heap)).toEqual([1, 2, 8, 9])
  })

  it('orders infinite ranks', () => {
    expect(drain(heapOf(item(Number.POSITIVE_INFINITY), item(0), item(Number.NEGATIVE_INFINITY)))).toEqual([
      Number.NEGATIVE_INFINITY,
      0,
      Number.POSITIVE_INFINITY,
    ])
  })

  it('refuses an item that is already in a heap, is in another one, or has no place in the order', () => {
    const mine = item(1)
    const heap = heapOf(mine)
    expect(() => heap.push(mine)).toThrow(/invariant/)
    expect(() => heapOf(item(1)).push(mine)).toThrow(/invariant/)
    expect(() => heapOf(item(1)).remove(mine)).toThrow(/invariant/)
    expect(() => heapOf(item(1)).rerank(mine, 2)).toThrow(/invariant/)
    expect(() => heap.remove(item(1))).toThrow(/invariant/)
    expect(() => heap.push(item(Number.NaN))).toThrow(/invariant/)
    expect(() => heap.rerank(mine, Number.NaN)).toThrow(/invariant/)
    heap.remove(mine)
    expect(() => heap.remove(mine)).toThrow(/invariant/)
  })

  it('visits only what it must: the items up to the rank and at most two more for each', () => {
    let reads = 0
    const counted = (rank: number): HeapItem => ({
      get rank() {
        reads += 1
        return rank
      },
      set rank(_) {},
      heapIndex: -1,
    })
    const heap = heapOf(...Array.from({ length: 10_000 }, (_, rank) => counted(rank)))
    reads = 0
    const seen: number[] = []
    heap.forEachUpTo(9, (each) => seen.push(each.heapIndex))
    expect(seen).toHaveLength(10)
    expect(reads).toBeLessThanOrEqual(10 + 11)
  })

  it('compares once for each item that arrives in rising order', () => {
    let reads = 0
    const heap = new Heap<HeapItem>()
    for (let rank = 0; rank < 1000; rank += 1) {
      heap.push({
        get rank() {
          reads += 1
          return rank
        },
        set rank(_) {},
        heapIndex: -1,
      })
    }
    expect(reads).toBeLessThanOrEqual(3 * 1000) // its own rank is checked and compared, its parent's compared
  })

  it('agrees with a list that is searched, over random pushes, removals, reranks and visits', () => {
    const seed = Math.floor(Math.random() * 2 ** 31)
    console.log(`heap seed ${seed}`)
    const random = randomFrom(seed)
    const heap = new Heap<HeapItem>()
    const list: HeapItem[] = []
    for (let step = 0; step < 20_000; step += 1) {
      const growing = step % 4000 < 2000
      const choice = random(10)
      const chosen = list[random(Math.max(1, list.length))]
      if (chosen === undefined || choice < (growing ? 6 : 3)) {
        const pushed = item(random(50))
        list.push(pushed)
        heap.push(pushed)
      } else if (choice < 8) {
        const removed = random(3) === 0 ? heap.peek() : chosen
        expect(removed).toBeDefined()
        if (removed === undefined) continue
        list.splice(list.indexOf(removed), 1)
        heap.remove(removed)
        expect(removed.heapIndex).toBe(-1)
      } else {
        heap.rerank(chosen, random(50))
      }
      expect(heap.size).toBe(list.length)
      const least = Math.min(...list.map((each) => each.rank))
      expect(heap.peek()?.rank ?? Number.POSITIVE_INFINITY).toBe(least)
      if (step % 50 === 0) {
        const maxKey = random(60) - 5
        const visited = new Set<HeapItem>()
        heap.forEachUpTo(maxKey, (each) => visited.add(each))
        expect(visited).toEqual(new Set(list.filter((each) => each.rank <= maxKey)))
      }
    }
    expect(drain(heap)).toEqual(list.map((each) => each.rank).sort((a, b) => a - b))
  })
})
