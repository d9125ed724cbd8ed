import { describe, expect, it } from 'vitest'
import { atOnce, inTurns, type Steps } from '../src/steps.ts'

function* count(to: number, done: number[], failAt = 0): Steps<string> {
  for (let step = 1; step <= to; step += 1) {
    if (step === failAt) throw new RangeError(`step ${step}`)
    done.push(step)
    if (step < to) yield
  }
  return 'counted'
}

describe('inTurns', () => {
  it('PUB-3 answers at once what is a single step, and throws at once what that throws', () => {
    expect(inTurns(count(1, []))).toBe('counted')
    expect(() => inTurns(count(1, [], 1))).toThrow('step 1')
  })

  it('PUB-3 does one step, and each further one in a later turn of the event loop', async () => {
    const done: number[] = []
    const seen: number[] = []
    let isOver = false
    const counting = Promise.resolve(inTurns(count(5, done))).finally(() => {
      isOver = true
    })
    expect(done).toEqual([1])
    while (!isOver) {
      if (seen.at(-1) !== done.length) seen.push(done.length)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await counting).toBe('counted')
    expect(seen).toEqual([1, 2, 3, 4])
    expect(done).toEqual(atOnceOf(5))
  })

  it('PUB-5 a step that throws ends the work', async () => {
    const done: number[] = []
    await expect(inTurns(count(5, done, 4))).rejects.toThrow('step 4')
    expect(done).toEqual([1, 2, 3])
  })
})

/** What all steps come to when nothing goes in between. */
function atOnceOf(to: number): readonly number[] {
  const done: number[] = []
  expect(atOnce(count(to, done))).toBe('counted')
  return done
}
