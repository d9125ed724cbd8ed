import { describe, expect, it } from 'vitest'
import { List, type ListItem } from '../src/list.ts'

class Named implements ListItem<Named> {
  readonly name: string
  list: List<Named> | null = null
  previous: Named | null = null
  next: Named | null = null

  constructor(name: string) {
    this.name = name
  }
}

const listOf = (...items: Named[]): List<Named> => {
  const list = new List<Named>()
  for (const item of items) list.append(item)
  return list
}

const namesOf = (list: List<Named>): string => {
  let names = ''
  for (let item = list.first; item !== null; item = item.next) names += item.name
  return names
}

const namesBackwards = (last: Named): string => {
  let names = ''
  for (let item: Named | null = last; item !== null; item = item.previous) names += item.name
  return names
}

const four = (): [Named, Named, Named, Named] => [new Named('a'), new Named('b'), new Named('c'), new Named('d')]

describe('List', () => {
  it('keeps items in the order in which they were appended', () => {
    const items = four()
    const list = listOf(...items)
    expect(namesOf(list)).toBe('abcd')
    expect(namesBackwards(items[3])).toBe('dcba')
    expect(list.isEmpty).toBe(false)
  })

  it('is empty without items', () => {
    const list = listOf()
    expect(list.first).toBeNull()
    expect(list.isEmpty).toBe(true)
  })

  it.each([
    [0, 'bcd'],
    [1, 'acd'],
    [2, 'abd'],
    [3, 'abc'],
  ] as const)('QUE-7 unlinks item %i and joins its neighbours both ways', (index, rest) => {
    const items = four()
    const list = listOf(...items)
    expect(list.remove(items[index])).toBe(true)
    expect(namesOf(list)).toBe(rest)
    expect(namesBackwards(items[index === 3 ? 2 : 3])).toBe([...rest].reverse().join(''))
  })

  it('removes an item once: again is harmless and says so', () => {
    const [a, b] = four()
    const list = listOf(a, b)
    expect([list.remove(a), list.remove(a)]).toEqual([true, false])
    expect(namesOf(list)).toBe('b')
  })

  it('does not remove an item of another list', () => {
    const [a, b] = four()
    const [one, other] = [listOf(a), listOf(b)]
    expect(one.remove(b)).toBe(false)
    expect(namesOf(other)).toBe('b')
    expect(namesOf(one)).toBe('a')
  })

  it('takes an item back at the end after it left, also into another list', () => {
    const [a, b, c] = four()
    const list = listOf(a, b, c)
    list.remove(a)
    list.append(a)
    expect(namesOf(list)).toBe('bca')
    list.remove(b)
    expect(namesOf(listOf(b))).toBe('b')
    expect(namesOf(list)).toBe('ca')
  })

  it('refuses an item that is already in a list', () => {
    const [a] = four()
    const list = listOf(a)
    expect(() => list.append(a)).toThrow('appended while in a list')
    expect(() => listOf(a)).toThrow('appended while in a list')
  })

  it('can be emptied and filled again', () => {
    const [a, b] = four()
    const list = listOf(a)
    list.remove(a)
    expect(list.first).toBeNull()
    list.append(b)
    list.append(a)
    expect(namesOf(list)).toBe('ba')
  })

  it('leaves no link in an item that left, so that it keeps nothing alive', () => {
    const [a, b, c] = four()
    const list = listOf(a, b, c)
    list.remove(b)
    expect([b.list, b.previous, b.next]).toEqual([null, null, null])
    expect(namesOf(list)).toBe('ac')
  })
})
