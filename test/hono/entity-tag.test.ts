import { describe, expect, it } from 'vitest'
import { ifMatches } from '../../src/hono/entity-tag.ts'

describe('If-Match', () => {
  it.each([
    ['"a"', true],
    [' "a" ', true],
    ['*', true],
    [' * ', true],
    ['"b", "a"', true],
    ['"b","a","c"', true],
    [', "a" ,, "b" ,', true],
    ['"x, \t y", "a"', false], // blanks may not stand in a tag
    ['"x,y", "a"', true],
    ['W/"a"', false],
    ['W/"a", "a"', true],
    ['"A"', false],
    ['a', false],
    ['"a', false],
    ['"a" "a"', false],
    ['"b"; "a"', false],
    ['"a", *', false],
    ['*, "a"', false],
    ['""', false],
    ['"b"', false],
    ['w/"a"', false],
  ])('ADX-7 %j lets a writer of "a" go on: %j', (field, expected) => {
    expect(ifMatches(field, '"a"')).toBe(expected)
  })
})
