import { describe, expect, it } from 'vitest'
import type { Algorithm, GatewayOptions } from '../../src/gateway.ts'
import { randomFrom } from '../support/random.ts'
import { expectQuiet, jsonOf, setup } from './support.ts'

/*
 * What may be selected is filtered in one place, `Upstreams.candidates`. Without that filter exactly the tests called
 * "exclusion" fail: every other one selects among upstreams that may all be selected.
 */

const ALGORITHMS: readonly Algorithm[] = ['weighted-round-robin', 'least-active', 'power-of-two', 'consistent-hash']
const SEED = 20_260_611

function gatewayOf(count: number, algorithm: Algorithm, options: GatewayOptions = {}): ReturnType<typeof setup> {
  const draw = randomFrom(SEED)
  const ids = Array.from({ length: count }, (_, index) => `u${index}`)
  const random = (): number => draw(1_000_000) / 1_000_000
  return setup(
    ids,
    { algorithm, random, ...options },
    { key: (c) => c.req.query('key'), pinned: (c) => c.req.query('pin') },
  )
}

describe('exclusion', () => {
  for (const algorithm of ALGORITHMS) {
    for (const count of [1, 2, 3, 50]) {
      it(`GWY-3 ${algorithm} over ${count}: once the event is answered, no selection yields the draining upstream (seed ${SEED})`, async () => {
        const setupOf = gatewayOf(count, algorithm)
        setupOf.drain('u0')
        for (let round = 0; round < 4 * count; round += 1) {
          const answer = await setupOf.ask(`/?key=${round}`)
          if (count === 1) expect(answer).toBe('503 all_draining')
          else expect(answer).toMatch(/^u[1-9]/)
        }
        expectQuiet(setupOf)
      })
    }

    it(`GWY-4 ${algorithm}: the only one left is not selected by a shortcut when it may not be`, async () => {
      const { drain, ask, network } = gatewayOf(2, algorithm)
      drain('u0')
      expect(await ask('/?key=k')).toBe('u1')
      drain('u1')
      expect(await ask('/?key=k')).toBe('503 all_draining')
      expect(network.origins).toEqual(['http://u1.test'])
    })

    it(`GWY-4 ${algorithm}: a pin to an upstream that cannot be selected is not honoured`, async () => {
      const { drain, ask } = gatewayOf(2, algorithm)
      drain('u0')
      for (let round = 0; round < 5; round += 1) expect(await ask('/?pin=u0&key=k')).toBe('u1')
      drain('u1')
      expect(await ask('/?pin=u0')).toBe('503 all_draining')
    })

    it(`GWY-6 ${algorithm}: an upstream whose lease ended is not selected, with no timer running`, async () => {
      const { clock, ask, gateway } = gatewayOf(2, algorithm, { heartbeatTimeoutMs: 100 })
      clock.advance(50)
      gateway.upstreams.apply([{ type: 'heartbeat', id: 'u1' }])
      clock.advance(50)
      for (let round = 0; round < 5; round += 1) expect(await ask(`/?key=${round}`)).toBe('u1')
      clock.advance(50)
      expect(await ask()).toBe('503 all_unhealthy')
    })

    it(`GWY-3 ${algorithm}: an ejected upstream is not selected`, async () => {
      const { network, ask } = gatewayOf(2, algorithm)
      network.at('http://u0.test', undefined)
      for (let round = 0; round < 8; round += 1) expect(await ask(`/?key=${round}`)).toBe('u1')
      network.at('http://u0.test', () => new Response('u0'))
      for (let round = 0; round < 8; round += 1) expect(await ask(`/?key=${round}`)).toBe('u1')
    })
  }

  it('GWY-3 with selectUnknown off an upstream waits for its first good probe', async () => {
    const { ask } = gatewayOf(1, 'least-active', { selectUnknown: false })
    expect(await ask()).toBe('503 all_unhealthy')
  })

  it('GWY-4 one that is draining and one that is not live: all_unhealthy, for not all are draining', async () => {
    const { clock, drain, gateway, ask } = gatewayOf(2, 'weighted-round-robin', { heartbeatTimeoutMs: 100 })
    clock.advance(99)
    gateway.upstreams.apply([{ type: 'heartbeat', id: 'u0' }])
    drain('u0')
    clock.advance(1)
    expect(await ask()).toBe('503 all_unhealthy')
  })

  it('GWY-4 with everything draining the answer is 503 at once, told apart and with Retry-After', async () => {
    const { app, drain, network, clock } = gatewayOf(2, 'weighted-round-robin')
    drain('u0')
    drain('u1')
    const response = await app.request('http://gateway.test/')
    expect(response.status).toBe(503)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(response.headers.get('retry-after')).toBe('1')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(await jsonOf(response)).toMatchObject({ status: 503, reason: 'all_draining' })
    expect(network.requests).toHaveLength(0)
    expect(clock.timersStarted).toBe(0)
  })

  it('GWY-5 a retry does not go to an upstream that began to drain meanwhile', async () => {
    const { network, drain, ask } = gatewayOf(3, 'weighted-round-robin')
    network.at('http://u0.test', () => {
      drain('u1')
      throw Object.assign(new TypeError('x'), { code: 'ECONNREFUSED' })
    })
    expect(await ask()).toBe('u2')
  })
})
