import { describe, expect, it } from 'vitest'
import { type ParseOptions, parseConfig, parseConfigSteps } from '../../src/config/parse.ts'
import type { Config } from '../../src/config/types.ts'
import { AdmissionConfigError } from '../../src/errors.ts'
import { atOnce } from '../../src/steps.ts'
import { randomFrom } from '../support/random.ts'
import { everything, fixedWindow, mutated } from './support.ts'

const known: Config = parseConfig(everything)
const parse = (candidate: unknown, like = known, options: ParseOptions = {}): Config =>
  atOnce(parseConfigSteps(candidate, options, like))

/** The text, for the order counts too; or the issues. */
function outcomeOf(config: () => Config): unknown {
  try {
    return JSON.stringify(config())
  } catch (error) {
    if (!(error instanceof AdmissionConfigError)) throw error
    return error.issues
  }
}

describe('parsing with a known configuration', () => {
  it('CFG-1 CFG-4 comes to the same, issues too, whatever candidate and known have in common', () => {
    const random = randomFrom(20_260_418)
    const knowns = [known, parseConfig({})]
    for (let round = 0; round < 1500; round += 1) {
      const candidate = mutated(everything, random(4), random)
      const wanted = outcomeOf(() => parseConfig(candidate))
      for (const like of knowns) {
        expect({ candidate, like, outcome: outcomeOf(() => parse(candidate, like)) }).toEqual({
          candidate,
          like,
          outcome: wanted,
        })
      }
      if (typeof wanted === 'string') knowns[random(6)] = parse(candidate, knowns[random(knowns.length)])
    }
    expect(knowns).toHaveLength(6)
  })

  it('PUB-3 takes what is equal from it, defaults left out or given, and copies only what is around a change', () => {
    expect(parse(structuredClone(everything))).toBe(known)
    const defaults = parseConfig({ queue: { maxQueuedCalls: 1 } })
    expect(parse({ queue: { maxQueuedCalls: 1 } }, defaults)).toBe(defaults)
    const changed = structuredClone({ ...everything, global: { concurrency: 1 } })
    const config = parse(changed)
    expect(config.global).toEqual({ concurrency: 1 })
    expect(config.queue).toBe(known.queue)
    expect(config.contracts).toBe(known.contracts)
    expect(Object.isFrozen(config)).toBe(true)
  })

  it('PUB-3 takes equal members of a record in which others come, go and change', () => {
    const like = parseConfig({ contracts: { '/a': { concurrency: 1 }, '/b': { concurrency: 2 }, '/c': {} } })
    const config = parse({ contracts: { '/new': {}, '/b': { concurrency: 2 }, '/a': { concurrency: 3 } } }, like)
    expect(Object.keys(config.contracts ?? {})).toEqual(['/new', '/b', '/a'])
    expect(config.contracts?.['/b']).toBe(like.contracts?.['/b'])
    expect(config.contracts?.['/a']).toEqual({ concurrency: 3 })
  })

  it('CFG-4 a part of it that stands in the candidate is taken as it is, elsewhere it is copied', () => {
    const config = parse({ ...known, contracts: { ...known.contracts, '/new': known.contracts?.['/orders'] } })
    expect(config.contracts?.['/orders']).toBe(known.contracts?.['/orders'])
    expect(config.contracts?.['/new']).not.toBe(known.contracts?.['/orders'])
    expect(config.contracts?.['/new']).toEqual(known.contracts?.['/orders'])
  })

  it('CFG-4 a getter is read once, whether or not what it gives is known', () => {
    const like = parseConfig({ global: { concurrency: 1, rate: fixedWindow } })
    for (const value of [1, 2]) {
      let reads = 0
      const global = {
        get concurrency() {
          reads += 1
          return value
        },
        rate: { ...fixedWindow, windowMs: value },
      }
      expect(parse({ global }, like)).toEqual({
        global: { concurrency: value, rate: { ...fixedWindow, windowMs: value } },
      })
      expect(reads).toBe(1)
    }
  })

  it('CFG-1 what Object.prototype was given is not known', () => {
    const like = parseConfig({ global: {} })
    Object.defineProperty(Object.prototype, 'concurrency', { value: -7, configurable: true, writable: true })
    try {
      expect(outcomeOf(() => parse({ global: { concurrency: -7 } }, like))).toMatchObject([
        { pointer: '/global/concurrency' },
      ])
    } finally {
      Reflect.deleteProperty(Object.prototype, 'concurrency')
    }
  })
})
