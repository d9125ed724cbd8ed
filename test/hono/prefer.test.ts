import { describe, expect, it } from 'vitest'
import { prefersAsync } from '../../src/hono/prefer.ts'

describe('Prefer', () => {
  it.each([
    ['respond-async', true],
    ['Respond-Async', true],
    ['  respond-async  ', true],
    ['wait=10, respond-async', true],
    ['respond-async, wait=10', true],
    ['respond-async; foo=bar', true],
    ['respond-async;foo="a, b"', true],
    ['respond-async=""', true],
    ['respond-async = ""', true],
    ['return=minimal,respond-async', true],
    [',,respond-async', true],
    ['', false],
    ['respond-asynchronously', false],
    ['not-respond-async', false],
    ['respond-async=no', false],
    ['respond-async="x"', false],
    ['wait=10; respond-async', false],
    ['foo="respond-async"', false],
    ['foo="a, respond-async, b"', false],
    ['foo="a\\", respond-async, b"', false],
    ['foo="a, respond-async', false],
    ['foo="a\\', false],
  ])('WEB-2 %j asks for an asynchronous answer: %j', (field, expected) => {
    expect(prefersAsync(field)).toBe(expected)
  })

  it('WEB-2 no field asks for nothing', () => {
    expect(prefersAsync(undefined)).toBe(false)
  })

  it('WEB-2 a field of 64 KiB of quotes and backslashes is read in linear time', () => {
    const started = performance.now()
    for (const piece of ['"', '\\"', '"\\', '",', '"\\"']) prefersAsync(`${piece.repeat(32_768)}\\`)
    expect(performance.now() - started).toBeLessThan(1000)
  })
})
