import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import {
  type AnnouncementFailure,
  type AnnounceOptions,
  type Announcer,
  announceInstance,
  createGateway,
  type Gateway,
  GatewayInputError,
  RegistryClient,
  RegistryError,
} from '../../src/gateway.ts'
import { ManualClock } from '../../src/manual-clock.ts'
import { barrier, errorOf } from '../support/core.ts'
import { cut, flush, Network, TOKEN } from './support.ts'

const G1 = 'http://g1.test'
const G2 = 'http://g2.test'
/** As good as a list of tokens, which are compared by digests that take their own time. */
const VERIFY = { verify: (token: string): boolean => token === TOKEN }

interface Scene {
  readonly clock: ManualClock
  readonly network: Network
  readonly failures: AnnouncementFailure[]
  readonly announcer: Announcer
  /** Puts a new gateway at an origin, with nothing registered. */
  boot(origin: string): Gateway
  /** Types of the events that were sent, in order. */
  said(): Promise<readonly string[]>
  advance(ms: number): Promise<void>
}

function scene(options: Partial<AnnounceOptions> = {}): Scene {
  const clock = new ManualClock()
  const network = new Network()
  const failures: AnnouncementFailure[] = []
  const bodies: Promise<string>[] = []
  const announcer = announceInstance({
    gateways: [`${G1}/gateway/`],
    token: TOKEN,
    id: 'a',
    url: 'http://a.test',
    generation: 1,
    heartbeatMs: 1000,
    backoff: { firstMs: 100, maxMs: 400 },
    timeoutMs: 500,
    patienceMs: 3000,
    random: () => 1,
    onFailure: (failure) => failures.push(failure),
    clock,
    fetch: (request) => {
      bodies.push(request.clone().text())
      return network.fetch(request)
    },
    ...options,
  })
  return {
    clock,
    network,
    failures,
    announcer,
    boot(origin) {
      const gateway = createGateway({ clock, fetch: network.fetch, heartbeatTimeoutMs: 3000 })
      const app = new Hono()
      app.route('/gateway', gateway.registry(VERIFY))
      network.at(origin, app)
      return gateway
    },
    said: async () => (await Promise.all(bodies)).map((body) => /"type":"(\w+)"/.exec(body)?.[1] ?? body),
    advance: async (ms) => {
      clock.advance(ms)
      await flush()
    },
  }
}

function markerOf(gateway: Gateway): string | undefined {
  const upstream = gateway.upstreams.get('a')
  if (upstream === undefined) return 'absent'
  return upstream.draining === null ? upstream.lease : (upstream.draining.reason ?? 'draining')
}

describe('the life of an instance', () => {
  it('GWY-7 its draining is over when nothing is under way to it from any gateway, which it asks for soon and ever less often', async () => {
    const { boot, network, announcer, advance, said } = scene()
    const gateway = boot(G1)
    const answer = barrier()
    network.at('http://a.test', async () => {
      await answer.promise
      return new Response('late')
    })
    await announcer.start()
    const app = new Hono().all('*', gateway.proxy())
    const asked = app.request('http://g1.test/')
    await flush()
    let isOver = false
    const draining = announcer.draining().then((reports) => {
      isOver = true
      return reports
    })
    await flush()
    for (let step = 0; step < 5; step += 1) await advance(50)
    expect(markerOf(gateway)).toBe('draining')
    expect(isOver).toBe(false)
    expect(await said()).toEqual(['register', 'draining', 'heartbeat', 'heartbeat']) // after 50 and 150 ms
    answer.resolve()
    expect(await (await asked).text()).toBe('late')
    await advance(99)
    expect(isOver).toBe(false)
    await advance(1)
    expect(isOver).toBe(true)
    expect(await draining).toMatchObject([{ told: 'draining', isSettled: true }])
    await announcer.offline()
  })

  it('GWY-7 a response that does not end holds its draining up for patienceMs at most', async () => {
    const { boot, network, announcer, advance } = scene()
    const gateway = boot(G1)
    network.at('http://a.test', () => new Response(new ReadableStream()))
    await announcer.start()
    const response = await new Hono().all('*', gateway.proxy()).request('http://g1.test/')
    const draining = announcer.draining()
    for (let step = 0; step < 30; step += 1) await advance(100)
    expect(await draining).toMatchObject([{ told: 'draining', isSettled: true, failures: 0 }])
    await response.body?.cancel()
    await announcer.offline()
  })

  it('GWY-7 it registers, sends heartbeats, asks for nothing new, and takes itself out', async () => {
    const { boot, announcer, advance, said, clock } = scene({
      weight: 3,
      warmupMs: 5,
      labels: { zone: 'x' },
      props: { note: 1 },
    })
    const gateway = boot(G1)
    expect(await said()).toEqual([]) // RUN-1
    expect(clock.timersStarted).toBe(0)
    expect(await announcer.start()).toEqual([
      { url: `${G1}/gateway/`, told: 'up', isSettled: true, failures: 0, lastError: undefined },
    ])
    expect(gateway.upstreams.get('a')).toMatchObject({
      url: 'http://a.test',
      generation: 1,
      weight: 3,
      warmupMs: 5,
      labels: { zone: 'x' },
      props: { note: 1 },
    })
    for (let beat = 0; beat < 10; beat += 1) await advance(1000)
    expect(markerOf(gateway)).toBe('live')

    expect(await announcer.draining('deploy')).toMatchObject([{ told: 'draining', isSettled: true }])
    expect(markerOf(gateway)).toBe('deploy')
    await advance(1000)
    expect(markerOf(gateway)).toBe('deploy')

    expect(await announcer.offline()).toMatchObject([{ told: 'nothing', isSettled: true }])
    expect(markerOf(gateway)).toBe('absent')
    expect(await said()).toEqual([
      'register',
      ...Array<string>(10).fill('heartbeat'),
      'draining',
      'heartbeat',
      'offline',
    ])
    expect(clock.pending).toBe(0)
  })

  it('GWY-7 calls are idempotent, and draining is told once whatever the number of calls', async () => {
    const { boot, announcer, said } = scene()
    boot(G1)
    await Promise.all([announcer.start(), announcer.start()])
    await Promise.all([announcer.draining('one'), announcer.draining('two')])
    await Promise.all([announcer.offline(), announcer.offline()])
    expect(await said()).toEqual(['register', 'draining', 'offline'])
  })

  it('GWY-7 an instance that resumes registers again, for nothing else clears the marker', async () => {
    const { boot, announcer, said } = scene()
    const gateway = boot(G1)
    await announcer.start()
    await announcer.draining()
    expect(markerOf(gateway)).toBe('draining')
    await announcer.start()
    expect(markerOf(gateway)).toBe('live')
    expect(await said()).toEqual(['register', 'draining', 'register'])
    await announcer.offline()
  })

  it('GWY-7 each draining gives its own reason, also after the instance resumed in between', async () => {
    const { boot, announcer } = scene()
    const gateway = boot(G1)
    await announcer.start()
    await announcer.draining('deploy')
    await announcer.draining('later') // the same draining: its first reason stays
    expect(markerOf(gateway)).toBe('deploy')
    for (const reason of ['scale-in', undefined]) {
      await announcer.start()
      await announcer.draining(reason)
      expect(markerOf(gateway)).toBe(reason ?? 'draining')
    }
    await announcer.offline()
  })

  it('GWY-7 one that never started has nothing to take back', async () => {
    const { boot, announcer, said, clock } = scene()
    boot(G1)
    await announcer.draining()
    await announcer.offline()
    expect(await said()).toEqual([])
    expect(clock.pending).toBe(0)
  })
})

describe('a gateway that does not answer', () => {
  it('GWY-7 a registry that is down at start is retried with backoff, doubling and bounded, until it is there', async () => {
    const { boot, announcer, advance, failures, clock } = scene()
    const started = announcer.start()
    await flush()
    for (let count = 0; count < 6; count += 1) await advance(400)
    expect(failures.map(({ event, retryInMs }) => [event, retryInMs])).toEqual(
      [
        ['register', 100],
        ['register', 200],
        ['register', 400],
        ['register', 400],
        ['register', 400],
        ['register', 400],
        ['register', 400],
      ].slice(0, failures.length),
    )
    expect(failures.length).toBeGreaterThanOrEqual(5)
    await advance(600)
    expect(await started).toMatchObject([{ isSettled: false }]) // patience is over, the trying is not
    expect(announcer.report()[0]?.failures).toBeGreaterThan(4)
    const gateway = boot(G1)
    await advance(400)
    expect(markerOf(gateway)).toBe('live')
    expect(announcer.report()).toMatchObject([{ told: 'up', failures: 0, lastError: undefined }])
    await announcer.offline()
    expect(clock.pending).toBe(0)
  })

  it('GWY-7 the backoff is jittered between half and all of it', async () => {
    for (const [random, retryInMs] of [
      [0, 50],
      [0.5, 75],
    ] as const) {
      const { announcer, failures } = scene({ random: () => random })
      announcer.start()
      await flush()
      expect(failures[0]?.retryInMs).toBe(retryInMs)
    }
  })

  it('GWY-7 a gateway that hangs is given up after timeoutMs, whether or not fetch listens to its signal', async () => {
    const { network, announcer, advance, failures } = scene()
    network.at(G1, () => new Promise(() => {}))
    announcer.start()
    await flush()
    await advance(499)
    expect(failures).toHaveLength(0)
    await advance(1)
    expect(failures).toMatchObject([{ event: 'register', error: { code: 'GATEWAY_DEADLINE' } }])
    expect(network.requests[0]?.signal.aborted).toBe(true)
  })

  it('GWY-7 offline with every gateway down ends after patienceMs and leaves no timer', async () => {
    const { boot, network, announcer, advance, clock } = scene()
    boot(G1)
    await announcer.start()
    network.at(G1, undefined)
    const offline = announcer.offline()
    await flush()
    for (let count = 0; count < 10; count += 1) await advance(300)
    expect(await offline).toMatchObject([{ isSettled: false }])
    expect(clock.pending).toBe(0)
  })

  it('GWY-7 offline of an instance whose registers never arrived ends at once', async () => {
    const { announcer, clock } = scene()
    announcer.start()
    await flush()
    expect(await announcer.offline()).toMatchObject([{ told: 'nothing', isSettled: true }])
    clock.advance(5000)
    expect(clock.pending).toBe(0)
  })

  it('GWY-7 a wrong token, a wrong address and a failing hook are failures like any other', async () => {
    for (const [gateways, token, expected] of [
      [[`${G1}/gateway`], 'wrong', { status: 401, reason: 'unauthorized' }],
      [[`${G1}/nowhere`], TOKEN, { status: 404 }],
    ] as const) {
      const errors: unknown[] = []
      const { boot, announcer, clock } = scene({
        gateways,
        token,
        onFailure: ({ error }) => {
          errors.push(error)
          throw new Error('hook')
        },
      })
      boot(G1)
      announcer.start()
      await flush()
      expect(errors).toMatchObject([expected])
      expect(clock.pending).toBeGreaterThan(0) // it will be tried again
      await announcer.offline()
    }
  })
})

describe('what a gateway has forgotten or not heard', () => {
  it('GWY-7 a gateway that was restarted is registered with again at the next heartbeat', async () => {
    const { boot, announcer, advance, failures } = scene()
    boot(G1)
    await announcer.start()
    const restarted = boot(G1)
    await advance(1000)
    expect(markerOf(restarted)).toBe('live')
    expect(failures).toEqual([])
    await announcer.offline()
  })

  it('GWY-7 a draining instance does not register with a gateway that was restarted', async () => {
    const { boot, announcer, advance, said } = scene()
    boot(G1)
    await announcer.start()
    await announcer.draining()
    const restarted = boot(G1)
    for (let beat = 0; beat < 3; beat += 1) await advance(1000)
    expect(markerOf(restarted)).toBe('absent')
    expect(await said()).toEqual(['register', 'draining', 'heartbeat'])
    await announcer.offline()
  })

  it('GWY-7 a heartbeat that finds the marker gone asks again for nothing new', async () => {
    const { boot, announcer, advance } = scene()
    const gateway = boot(G1)
    await announcer.start()
    await announcer.draining('deploy')
    gateway.upstreams.sync([{ id: 'a', url: 'http://a.test', generation: 1 }])
    expect(markerOf(gateway)).toBe('live')
    await advance(1000)
    expect(markerOf(gateway)).toBe('deploy')
    await announcer.offline()
  })

  it('GWY-7 draining waits for a register under way, so that the register cannot overtake it', async () => {
    const { boot, network, announcer, said, advance } = scene()
    const gateway = boot(G1)
    const hold = barrier()
    const answer = new Hono()
    answer.route('/gateway', gateway.registry(VERIFY))
    network.at(G1, async (request) => {
      await hold.promise
      return answer.fetch(request)
    })
    announcer.start()
    const draining = announcer.draining('now')
    await flush()
    expect(await said()).toEqual(['register'])
    hold.resolve()
    await draining
    expect(markerOf(gateway)).toBe('now')
    expect(await said()).toEqual(['register', 'draining'])
    await advance(1000)
    expect(markerOf(gateway)).toBe('now')
    await announcer.offline()
  })

  it('GWY-7 a register whose answer was lost may have counted, so draining and offline are told all the same', async () => {
    for (const step of ['draining', 'offline'] as const) {
      const { boot, network, announcer } = scene()
      const gateway = boot(G1)
      const app = new Hono()
      app.route('/gateway', gateway.registry(VERIFY))
      let isFirst = true
      network.at(G1, async (request) => {
        const response = await app.fetch(request)
        if (!isFirst) return response
        isFirst = false
        throw cut()
      })
      announcer.start()
      await flush()
      expect(markerOf(gateway)).toBe('live')
      await announcer[step]()
      expect(markerOf(gateway)).toBe(step === 'draining' ? 'draining' : 'absent')
      await announcer.offline()
    }
  })

  it('GWY-7 a draining that failed but may have counted is undone by a register when the instance resumes', async () => {
    const { boot, network, announcer } = scene()
    const gateway = boot(G1)
    await announcer.start()
    const app = new Hono()
    app.route('/gateway', gateway.registry(VERIFY))
    network.at(G1, async (request) => {
      const response = await app.fetch(request)
      network.at(G1, app)
      throw Object.assign(cut(), { response })
    })
    announcer.draining()
    await flush()
    expect(markerOf(gateway)).toBe('draining')
    await announcer.start()
    expect(markerOf(gateway)).toBe('live')
    await announcer.offline()
  })

  it('GWY-7 an instance that was replaced by a newer generation says no more', async () => {
    const { boot, announcer, advance, failures, said, clock } = scene()
    const gateway = boot(G1)
    await announcer.start()
    gateway.upstreams.apply([{ type: 'register', id: 'a', url: 'http://a.test', generation: 2 }])
    await advance(1000)
    expect(failures).toMatchObject([{ event: 'heartbeat', retryInMs: null, error: { reason: 'stale_generation' } }])
    expect(clock.pending).toBe(0)
    await advance(5000)
    await announcer.draining()
    await announcer.offline()
    expect(markerOf(gateway)).toBe('expired') // its replacement sent no heartbeats here
    expect((await said()).filter((type) => type !== 'heartbeat')).toEqual(['register'])
  })
})

describe('several gateways', () => {
  it('GWY-7 each is told on its own: one that is down holds up no other, and is told when it is back', async () => {
    const { boot, announcer, advance, failures } = scene({ gateways: [`${G1}/gateway`, `${G2}/gateway`] })
    const one = boot(G1)
    announcer.start()
    await flush()
    expect(markerOf(one)).toBe('live')
    expect(failures.every(({ gateway }) => gateway.startsWith(G2))).toBe(true)
    const two = boot(G2)
    await advance(400)
    expect(markerOf(two)).toBe('live')
    await announcer.draining('deploy')
    expect([markerOf(one), markerOf(two)]).toEqual(['deploy', 'deploy'])
    expect(await announcer.offline()).toMatchObject([{ isSettled: true }, { isSettled: true }])
    expect([markerOf(one), markerOf(two)]).toEqual(['absent', 'absent'])
  })

  it('GWY-7 draining resolves after patienceMs when one gateway cannot be told, and goes on telling it', async () => {
    const { boot, network, announcer, advance } = scene({ gateways: [`${G1}/gateway`, `${G2}/gateway`] })
    const [one, two] = [boot(G1), boot(G2)]
    await announcer.start()
    network.at(G2, undefined)
    const draining = announcer.draining()
    await flush()
    expect(markerOf(one)).toBe('draining')
    for (let count = 0; count < 10; count += 1) await advance(300)
    expect((await draining).map(({ isSettled }) => isSettled)).toEqual([true, false])
    const app = new Hono()
    app.route('/gateway', two.registry(VERIFY))
    network.at(G2, app)
    await advance(400)
    // Its lease ended meanwhile; the marker is set all the same.
    expect(markerOf(two)).toBe('draining')
    await announcer.offline()
  })
})

describe('what it is made of', () => {
  it('GWY-7 what no gateway would take fails when it is made, not for ever after', () => {
    for (const options of [
      { url: 'ftp://a.test' },
      { url: 'http://me:pw@a.test' },
      { id: '' },
      { weight: 0 },
      { generation: -1 },
      { generation: Number.NaN },
    ]) {
      expect(() => scene(options)).toThrow(GatewayInputError)
    }
    for (const options of [
      { heartbeatMs: 0 },
      { heartbeatMs: -5 },
      { timeoutMs: 2 ** 31 },
      { patienceMs: Number.NaN },
      { backoff: { firstMs: 0, maxMs: 10 } },
      { backoff: { firstMs: 20, maxMs: 10 } },
    ]) {
      const [name = ''] = Object.keys(options)
      expect(() => scene(options)).toThrow(new RegExp(`Cannot announce the instance: ${name}.* is .* whole number`))
    }
    for (const gateway of ['nowhere', 'ftp://g.test']) expect(() => scene({ gateways: [gateway] })).toThrow(TypeError)
    for (const token of ['', 'with spaces', 'broken\n'])
      expect(() => scene({ token })).toThrow(/token .* no bearer token/)
  })
})

describe('RegistryClient', () => {
  it('GWY-7 sends a batch once and gives back what was applied', async () => {
    const { boot, network, clock } = scene()
    boot(G1)
    const client = new RegistryClient({ url: `${G1}/gateway`, token: TOKEN, fetch: network.fetch, clock })
    expect(
      await client.send([
        { type: 'register', id: 'x', url: 'http://x.test' },
        { type: 'draining', id: 'x' },
      ]),
    ).toEqual({
      revision: 1,
      events: [
        { type: 'register', id: 'x', draining: false, active: 0 },
        { type: 'draining', id: 'x', draining: true, active: 0 },
      ],
    })
    const error = await errorOf(client.send([{ type: 'heartbeat', id: 'y' }]))
    expect(error).toBeInstanceOf(RegistryError)
    expect(error).toMatchObject({ status: 404, reason: 'unknown_upstream' })
    expect(clock.pending).toBe(0)
  })

  it('GWY-7 an answer that is none of a registry is an error, also with status 200', async () => {
    const { network, clock } = scene()
    const client = new RegistryClient({ url: G1, token: TOKEN, fetch: network.fetch, clock })
    for (const [body, status, reason] of [
      ['<html>', 200, 'not_a_registry'],
      ['{}', 200, 'not_a_registry'],
      ['{"revision":"1","events":[]}', 200, 'not_a_registry'],
      ['Bad gateway', 502, null],
      ['{"reason":7}', 500, null],
    ] as const) {
      network.at(G1, () => new Response(body, { status }))
      expect(await errorOf(client.send([{ type: 'heartbeat', id: 'y' }]))).toMatchObject({ status, reason })
    }
    network.at(G1, () => new Response(null, { status: 302, headers: { location: 'http://evil.test' } }))
    expect(await errorOf(client.send([{ type: 'heartbeat', id: 'y' }]))).toMatchObject({ status: 302 }) // the token stays here
  })
})
