import { describe, expect, it } from 'vitest'
import { declaredBytes } from '../../src/hono/declared-bytes.ts'

const post = (headers: Record<string, string>, body: string | null = 'abc'): Request =>
  new Request('http://localhost/', { method: 'POST', headers, body })

describe('declared bytes', () => {
  it.each([
    ['0', 0],
    ['3', 3],
    ['007', 7],
    ['9007199254740991', 9007199254740991],
    ['9007199254740992', 'unknown'],
    ['99999999999999999999999', 'unknown'],
    ['-1', 'unknown'],
    ['+3', 'unknown'],
    ['0x3', 'unknown'],
    ['3.0', 'unknown'],
    ['3, 3', 'unknown'],
    ['1e3', 'unknown'],
    ['', 'unknown'],
  ])('QUE-8 Content-Length %j declares %j', (length, expected) => {
    expect(declaredBytes(post({ 'content-length': length }))).toBe(expected)
  })

  it('QUE-8 a body without a length is unknown, chunked or not', () => {
    expect(declaredBytes(post({}))).toBe('unknown')
    expect(declaredBytes(post({ 'transfer-encoding': 'chunked' }))).toBe('unknown')
  })

  it('QUE-8 without a body there are no bytes', () => {
    expect(declaredBytes(new Request('http://localhost/'))).toBe(0)
    expect(declaredBytes(post({}, null))).toBe(0)
  })

  it('QUE-8 a gzip body counts as sent', () => {
    expect(declaredBytes(post({ 'content-length': '1052', 'content-encoding': 'gzip' }))).toBe(1052)
  })

  it('QUE-8 asking leaves the body unread', async () => {
    const request = post({})
    declaredBytes(request)
    expect(request.bodyUsed).toBe(false)
    expect(await request.text()).toBe('abc')
  })
})
