import { describe, expect, it } from 'vitest'
import type { Algorithm, GatewayOptions } from '../../src/gateway.ts'
import { barrier } from '../support/core.ts'
import { randomFrom } from '../support/random.ts'
import { expectQuiet, flush, originOf, setup } from './support.ts'

const SEED = 7

function shares(answers: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const answer of answers) counts[answer] = (counts[answer] ?? 0) + 1
  return counts
}

function gatewayOf(
  algorithm: Algorithm,
  weights: Record<string, number>,
  options: GatewayOptions = {},
): ReturnType<typeof setup> {
  const draw = randomFrom(SEED)
  const random = (): number => draw(1_000_000) / 1_000_000
  const setupOf = setup(
    Object.keys(weights),
    { algorithm, random, ...options },
    { key: (c) => c.req.query('key'), pinned: (c) => c.req.query('pin') },
  )
  for (const [id, weight] of Object.entries(weights)) setupOf.register(id, { weight })
  return setupOf
}

async function ask(
  setupOf: ReturnType<typeof setup>,
  count: number,
  path = (index: number) => `/?key=${index}`,
): Promise<string[]> {
  const answers: string[] = []
  for (let index = 0; index < count; index += 1) answers.push(await setupOf.ask(path(index)))
  return answers
}

describe('weighted round robin', () => {
  it('GWY-4 the heavier gets its share, spread out and not in a row', async () => {
    const setupOf = gatewayOf('weighted-round-robin', { a: 5, b: 1, c: 1 })
    expect((await ask(setupOf, 14)).join('')).toBe('aabacaaaabacaa')
    expectQuiet(setupOf)
  })

  it('GWY-4 the others keep their shares when one leaves, and it gets its own when it is back', async () => {
    const setupOf = gatewayOf('weighted-round-robin', { a: 2, b: 1, c: 1 })
    await ask(setupOf, 5)
    setupOf.gateway.upstreams.apply([{ type: 'offline', id: 'c' }])
    expect(shares(await ask(setupOf, 60))).toEqual({ a: 40, b: 20 })
    setupOf.register('c')
    const { a, b, c } = shares(await ask(setupOf, 80))
    expect([a, b, c]).toEqual([40, 20, 20])
  })
})

describe('least active', () => {
  it('GWY-4 the one with the least under way by weight is selected, and equals take turns', async () => {
    const setupOf = gatewayOf('least-active', { a: 1, b: 1, c: 3 })
    const hold = barrier()
    for (const id of ['a', 'b', 'c']) {
      setupOf.network.at(originOf(id), async () => {
        await hold.promise
        return new Response(id)
      })
    }
    const asked = Array.from({ length: 10 }, (_, index) => setupOf.ask(`/${index}`))
    await flush()
    const { healthy } = setupOf.gateway.upstreams.list()
    expect(healthy.map(({ id, active }) => [id, active])).toEqual([
      ['a', 2],
      ['b', 2],
      ['c', 6],
    ])
    hold.resolve()
    await Promise.all(asked)
    expectQuiet(setupOf)
  })

  it('GWY-4 an idle gateway does not send everything to the first', async () => {
    const setupOf = gatewayOf('least-active', { a: 1, b: 1, c: 1 })
    expect(shares(await ask(setupOf, 30))).toEqual({ a: 10, b: 10, c: 10 })
  })
})

describe('power of two choices', () => {
  it(`GWY-4 two are drawn and the less loaded is selected: nobody is left out (seed ${SEED})`, async () => {
    const setupOf = gatewayOf('power-of-two', { a: 1, b: 1, c: 1, d: 1 })
    const counts = shares(await ask(setupOf, 200))
    for (const id of ['a', 'b', 'c', 'd']) expect(counts[id]).toBeGreaterThan(30)
  })

  it('GWY-4 of two it is always the less loaded, whatever is drawn, also at the ends of the range', async () => {
    for (const drawn of [0, 0.4999, 0.5, 0.999_999_999, 1]) {
      const setupOf = gatewayOf('power-of-two', { a: 1, b: 1 }, { random: () => drawn })
      const hold = barrier()
      setupOf.network.at(originOf('a'), async () => {
        await hold.promise
        return new Response('a')
      })
      const pinned = setupOf.ask('/?pin=a')
      await flush()
      expect(await ask(setupOf, 3)).toEqual(['b', 'b', 'b'])
      hold.resolve()
      await pinned
    }
  })
})

describe('consistent hash', () => {
  const KEYS = Array.from({ length: 400 }, (_, index) => `key-${index}`)
  const owners = async (setupOf: ReturnType<typeof setup>): Promise<Map<string, string>> =>
    new Map(
      (await ask(setupOf, KEYS.length, (index) => `/?key=${KEYS[index]}`)).map((id, index) => [KEYS[index] ?? '', id]),
    )

  it('GWY-4 a key stays where it is; only the keys of one that left move, and they come back with it', async () => {
    const setupOf = gatewayOf('consistent-hash', { a: 1, b: 1, c: 1, d: 1 })
    const before = await owners(setupOf)
    expect(await owners(setupOf)).toEqual(before)
    setupOf.gateway.upstreams.apply([{ type: 'offline', id: 'b' }])
    const without = await owners(setupOf)
    for (const [key, owner] of before) {
      if (owner === 'b') expect(without.get(key)).not.toBe('b')
      else expect(without.get(key)).toBe(owner)
    }
    setupOf.register('b')
    expect(await owners(setupOf)).toEqual(before)
  })

  it('GWY-4 shares follow the weights', async () => {
    const counts = shares([...(await owners(gatewayOf('consistent-hash', { a: 1, b: 1, c: 2 }))).values()])
    expect(counts.a).toBeGreaterThan(75)
    expect(counts.a).toBeLessThan(125)
    expect(counts.b).toBeGreaterThan(75)
    expect(counts.b).toBeLessThan(125)
    expect(counts.c).toBeGreaterThan(170)
  })

  it('GWY-4 a request without a key takes its turn', async () => {
    const setupOf = gatewayOf('consistent-hash', { a: 1, b: 1 })
    expect(shares(await ask(setupOf, 10, () => '/'))).toEqual({ a: 5, b: 5 })
  })
})

describe('pins', () => {
  it('GWY-4 a pinned request goes to its upstream while that can be selected, an unknown one elsewhere', async () => {
    const setupOf = gatewayOf('weighted-round-robin', { a: 1, b: 1 })
    expect(await ask(setupOf, 4, () => '/?pin=b')).toEqual(['b', 'b', 'b', 'b'])
    expect(shares(await ask(setupOf, 4, () => '/?pin=nobody'))).toEqual({ a: 2, b: 2 })
  })
})

describe('warm-up', () => {
  it('GWY-4 the weight ramps up after a register, and again after a fresh one', async () => {
    const setupOf = gatewayOf('weighted-round-robin', { a: 1 })
    setupOf.network.at(originOf('b'), () => new Response('b'))
    for (let round = 0; round < 2; round += 1) {
      setupOf.register('b', { warmupMs: 1000 })
      const begin = shares(await ask(setupOf, 110))
      expect(begin.b).toBe(10) // a tenth at once
      setupOf.clock.advance(500)
      expect(shares(await ask(setupOf, 150)).b).toBe(50)
      setupOf.clock.advance(500)
      expect(shares(await ask(setupOf, 100)).b).toBe(50)
      setupOf.gateway.upstreams.apply([{ type: 'heartbeat', id: 'b' }]) // no fresh start
      expect(shares(await ask(setupOf, 100)).b).toBe(50)
    }
  })
})

describe('nothing to select', () => {
  it('GWY-4 an empty registry answers 503 no_upstreams', async () => {
    const { ask: one, gateway, register } = setup()
    expect(await one()).toBe('503 no_upstreams')
    register('a')
    gateway.upstreams.apply([{ type: 'offline', id: 'a' }])
    expect(await one()).toBe('503 no_upstreams')
  })
})
