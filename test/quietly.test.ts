import { describe, expect, it } from 'vitest'
import { quietly } from '../src/quietly.ts'

describe('quietly', () => {
  it('ADX-6 calls at once, and drops what is thrown then or later', async () => {
    const called: string[] = []
    const now = quietly(() => {
      called.push('now')
      throw new Error('now')
    })
    const later = quietly(async () => {
      called.push('later')
      await Promise.resolve()
      throw new Error('later')
    })
    expect(called).toEqual(['now', 'later'])
    expect(await Promise.all([now, later])).toEqual([undefined, undefined])
  })
})
