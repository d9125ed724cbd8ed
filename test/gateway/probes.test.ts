import { describe, expect, it } from 'vitest'
import { Upstreams } from '../../src/gateway/upstreams.ts'
import type { Upstream } from '../../src/gateway.ts'
import { ManualClock } from '../../src/manual-clock.ts'
import { barrier } from '../support/core.ts'
import { expectQuiet, flush, originOf, refused, setup } from './support.ts'

const PROBES = { path: '/readyz', intervalMs: 1000, timeoutMs: 300, rise: 2, fall: 3 }

/** A gateway that probes; `answers` gives the status of an upstream, or fails. */
function probed(
  ids: readonly string[],
  status: (id: string, round: number) => number | Promise<number>,
): ReturnType<typeof setup> & { probes: string[] } {
  const probes: string[] = []
  const setupOf = setup([], { probes: PROBES, heartbeatTimeoutMs: 1_000_000 })
  for (const id of ids) {
    let round = 0
    setupOf.network.at(originOf(id), async (request) => {
      if (!request.url.endsWith('/readyz')) return new Response(id)
      probes.push(id)
      round += 1
      return new Response('probe', { status: await status(id, round) })
    })
    setupOf.register(id)
  }
  setupOf.gateway.start()
  return Object.assign(setupOf, { probes })
}

async function advance({ clock }: ReturnType<typeof setup>, ms: number): Promise<void> {
  clock.advance(ms)
  await flush()
}

describe('active probes', () => {
  it('GWY-5 nothing is probed before start and after stop; in between each once at once, then at intervals', async () => {
    const setupOf = setup(['a', 'b'], { probes: PROBES })
    await advance(setupOf, 5000)
    expect(setupOf.network.requests).toHaveLength(0)
    setupOf.gateway.start()
    setupOf.gateway.start()
    await advance(setupOf, 0)
    expect(setupOf.network.requests.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'GET http://a.test/readyz',
      'GET http://b.test/readyz',
    ])
    await advance(setupOf, 999)
    expect(setupOf.network.requests).toHaveLength(2)
    await advance(setupOf, 1)
    expect(setupOf.network.requests).toHaveLength(4)
    setupOf.gateway.stop()
    setupOf.gateway.stop()
    await advance(setupOf, 5000)
    expect(setupOf.network.requests).toHaveLength(4)
    expectQuiet(setupOf)
  })

  it('GWY-5 health rises after `rise` good probes in a row and falls after `fall` bad ones, and not before', async () => {
    const results = [200, 503, 200, 200, 503, 503, 200, 503, 503, 503, 200, 299]
    const setupOf = probed(['a'], (_, round) => results[round - 1] ?? 200)
    const seen: (string | undefined)[] = []
    for (let round = 0; round < results.length; round += 1) {
      await advance(setupOf, round === 0 ? 0 : 1000)
      seen.push(setupOf.gateway.upstreams.get('a')?.health)
    }
    expect(seen).toEqual([
      'unknown',
      'unknown',
      'unknown',
      'healthy',
      'healthy',
      'healthy',
      'healthy',
      'healthy',
      'healthy',
      'unhealthy',
      'unhealthy',
      'healthy',
    ])
    expectQuiet(setupOf)
  })

  it('GWY-5 a refused connection, a redirect and no answer within the timeout are failed probes', async () => {
    const hang = barrier<number>()
    const setupOf = probed(['refused', 'redirect', 'hangs'], (id) => (id === 'hangs' ? hang.promise : 302))
    setupOf.network.at(originOf('refused'), undefined)
    for (let round = 0; round < 3; round += 1) await advance(setupOf, round === 0 ? 0 : 1000)
    expect(setupOf.lists()).toEqual([['hangs'], ['refused', 'redirect'], []])
    await advance(setupOf, 299)
    expect(setupOf.lists()[1]).toEqual(['refused', 'redirect'])
    await advance(setupOf, 1)
    expect(setupOf.lists()).toEqual([[], ['refused', 'redirect', 'hangs'], []])
    expect(setupOf.gateway.upstreams.list().unhealthy[2]?.lastProbe).toEqual({ ok: false, agoMs: 0 })
    hang.resolve(200) // far too late
    await flush()
    expect(setupOf.lists()[1]).toContain('hangs')
    expectQuiet(setupOf)
  })

  it('GWY-5 a slow probe is not overtaken by the next of its upstream', async () => {
    const setupOf = setup(['a'], { probes: { intervalMs: 100, timeoutMs: 250 } })
    setupOf.network.at(originOf('a'), () => new Promise(() => {}))
    setupOf.gateway.start()
    await advance(setupOf, 0)
    await advance(setupOf, 249)
    expect(setupOf.network.requests).toHaveLength(1)
    await advance(setupOf, 1)
    await advance(setupOf, 0)
    expect(setupOf.network.requests).toHaveLength(2)
    expectQuiet(setupOf)
  })

  it('GWY-5 probes carry the headers that were asked for, and the status decides as was asked for', async () => {
    const setupOf = setup(['a'], {
      probes: { path: '/up?deep=1', headers: { 'x-probe': '1' }, isHealthy: (status) => status === 418 },
    })
    setupOf.network.at(originOf('a'), () => new Response('teapot', { status: 418 }))
    setupOf.gateway.start()
    await advance(setupOf, 0)
    expect(setupOf.network.requests[0]?.url).toBe('http://a.test/up?deep=1')
    expect(setupOf.network.requests[0]?.headers.get('x-probe')).toBe('1')
    expect(setupOf.gateway.upstreams.get('a')?.health).toBe('healthy')
    expectQuiet(setupOf)
  })
})

describe('probes and draining', () => {
  it('GWY-3 a draining upstream is not probed, and is again once a register has cleared the marker', async () => {
    const setupOf = probed(['a', 'b'], () => 200)
    await advance(setupOf, 0)
    setupOf.drain('a')
    setupOf.probes.length = 0
    for (let round = 0; round < 5; round += 1) await advance(setupOf, 1000)
    expect(new Set(setupOf.probes)).toEqual(new Set(['b']))
    setupOf.register('a')
    await advance(setupOf, 0)
    expect(setupOf.probes).toContain('a')
    expectQuiet(setupOf)
  })

  it('GWY-2 good, bad and flapping probes leave the marker as it is', async () => {
    for (const status of [() => 200, () => 503, (_: string, round: number) => (round % 2 === 0 ? 200 : 503)]) {
      const setupOf = probed(['a'], status)
      await advance(setupOf, 0)
      setupOf.drain('a')
      for (let round = 0; round < 6; round += 1) await advance(setupOf, 1000)
      expect(setupOf.lists()).toEqual([[], [], ['a']])
      expectQuiet(setupOf)
    }
  })

  it('GWY-3 a probe in flight when draining begins is aborted, and its answer discarded', async () => {
    const hang = barrier<number>()
    const setupOf = probed(['a'], () => hang.promise)
    await advance(setupOf, 0)
    const [request] = setupOf.network.requests
    expect(request?.signal.aborted).toBe(false)
    setupOf.drain('a')
    expect(request?.signal.aborted).toBe(true)
    hang.resolve(200)
    await flush()
    expect(setupOf.gateway.upstreams.get('a')).toMatchObject({ health: 'unknown', lastProbe: null })
    expect(setupOf.lists()).toEqual([[], [], ['a']])
    expectQuiet(setupOf)
  })

  it('GWY-3 a probe in flight across draining and a fresh register says nothing of the new epoch', async () => {
    const hangs = [barrier<number>(), barrier<number>()]
    const setupOf = probed(['a'], (_, round) => hangs[round - 1]?.promise ?? 200)
    await advance(setupOf, 0)
    setupOf.drain('a')
    setupOf.register('a')
    await advance(setupOf, 0)
    expect(setupOf.probes).toHaveLength(2)
    for (let count = 0; count < 3; count += 1) hangs[0]?.resolve(503)
    await flush()
    expect(setupOf.gateway.upstreams.get('a')?.lastProbe).toBeNull()
    hangs[1]?.resolve(200)
    await flush()
    expect(setupOf.gateway.upstreams.get('a')?.lastProbe).toMatchObject({ isOk: true })
    expectQuiet(setupOf)
  })

  it('GWY-3 a probe in flight of one that is gone, or replaced by a newer generation, is discarded', async () => {
    const hang = barrier<number>()
    const setupOf = probed(['a', 'b'], (_, round) => (round === 1 ? hang.promise : 200))
    await advance(setupOf, 0)
    setupOf.gateway.upstreams.apply([{ type: 'offline', id: 'a' }])
    setupOf.register('b', { generation: 1 })
    hang.resolve(503)
    await flush()
    expect(setupOf.gateway.upstreams.get('a')).toBeUndefined()
    expect(setupOf.gateway.upstreams.get('b')?.lastProbe).toBeNull()
    expectQuiet(setupOf)
  })

  it('GWY-6 an upstream whose lease ended is no longer probed, and probes do not bring it back', async () => {
    const setupOf = setup(['a'], { probes: PROBES, heartbeatTimeoutMs: 1500 })
    setupOf.gateway.start()
    await advance(setupOf, 0)
    await advance(setupOf, 1000)
    await advance(setupOf, 500)
    expect(setupOf.lists()).toEqual([[], ['a'], []])
    const { length } = setupOf.network.requests
    for (let round = 0; round < 3; round += 1) await advance(setupOf, 1000)
    expect(setupOf.network.requests).toHaveLength(length)
    expect(setupOf.lists()).toEqual([[], ['a'], []])
    expectQuiet(setupOf)
  })
})

describe('the registry itself', () => {
  it('GWY-3 takes in no probe of an older epoch, of a draining upstream or of one that was replaced', () => {
    const policy = {
      heartbeatTimeoutMs: 1000,
      warmupMs: 0,
      selectUnknown: true,
      maxUpstreams: 10,
      rise: 1,
      fall: 1,
      connectErrors: 1,
      ejectMs: 1,
    }
    const upstreams = new Upstreams(policy, new ManualClock())
    const url = originOf('a')
    const register = (generation: number): Upstream => {
      upstreams.apply([{ type: 'register', id: 'a', url, generation }])
      const [upstream] = upstreams.all()
      return upstream ?? expect.unreachable()
    }
    const first = register(1)
    const { epoch } = first
    upstreams.apply([{ type: 'draining', id: 'a' }])
    upstreams.recordProbe(first, epoch, false)
    upstreams.recordProbe(first, first.epoch, false)
    expect(first).toMatchObject({ health: 'unknown', lastProbe: null })
    register(1)
    upstreams.recordProbe(first, epoch, false)
    expect(first.health).toBe('unknown')
    upstreams.recordProbe(first, first.epoch, false)
    expect(first.health).toBe('unhealthy')
    const second = register(2)
    upstreams.recordProbe(first, first.epoch, false)
    upstreams.recordConnectError(first)
    expect(second.health).toBe('unknown')
    upstreams.recordConnectError(second)
    expect(second.health).toBe('unhealthy')
  })
})

describe('passive ejection', () => {
  it('GWY-5 a connect error ejects, for ejectMs where no probes run', async () => {
    const setupOf = setup(['a', 'b'], { ejection: { ejectMs: 500 } })
    setupOf.network.at(originOf('a'), undefined)
    setupOf.gateway.start()
    await setupOf.ask()
    await setupOf.ask()
    expect(setupOf.lists()).toEqual([['b'], ['a'], []])
    setupOf.clock.advance(499)
    expect(setupOf.lists()).toEqual([['b'], ['a'], []])
    setupOf.clock.advance(1)
    expect(setupOf.lists()).toEqual([['a', 'b'], [], []])
    expectQuiet(setupOf)
  })

  it('GWY-5 only connect errors in a row count, an answer of any status ends the row', async () => {
    const setupOf = setup(['a'], { ejection: { connectErrors: 2 } })
    const answer = (): Response => new Response('', { status: 500 })
    for (const isUp of [false, true, false, true, false]) {
      setupOf.network.at(originOf('a'), isUp ? answer : undefined)
      await setupOf.app.request('http://gateway.test/')
      expect(setupOf.lists()).toEqual([['a'], [], []])
    }
    await setupOf.app.request('http://gateway.test/')
    expect(setupOf.lists()).toEqual([[], ['a'], []])
  })

  it('GWY-5 where probes run they decide when an ejected upstream returns, and wait their interval first', async () => {
    const setupOf = probed(['a', 'b'], () => 200)
    for (let round = 0; round < 3; round += 1) await advance(setupOf, round === 0 ? 0 : 1000)
    expect(setupOf.gateway.upstreams.get('a')?.health).toBe('healthy')
    let isRefusing = true
    setupOf.network.at(originOf('a'), (request) => {
      if (isRefusing) throw Object.assign(new TypeError('x'), { code: 'ECONNREFUSED' })
      return new Response(request.url)
    })
    await setupOf.ask()
    await setupOf.ask()
    expect(setupOf.lists()).toEqual([['b'], ['a'], []])
    isRefusing = false
    setupOf.network.requests.length = 0
    await advance(setupOf, 999)
    expect(setupOf.network.origins).not.toContain('http://a.test')
    await advance(setupOf, 1)
    expect(setupOf.lists()).toEqual([['b'], ['a'], []]) // one good probe of two
    await advance(setupOf, 1000)
    expect(setupOf.lists()).toEqual([['a', 'b'], [], []])
    expectQuiet(setupOf)
  })

  it('GWY-5 once probes are stopped, an upstream that connect errors ejected returns after ejectMs', async () => {
    let isUp = true
    const setupOf = setup(['a'], { probes: { ...PROBES, rise: 1 }, ejection: { ejectMs: 500 } })
    setupOf.network.at(originOf('a'), () => {
      if (!isUp) throw refused()
      return new Response('a')
    })
    setupOf.gateway.start()
    await advance(setupOf, 0)
    isUp = false
    expect(await setupOf.ask()).toBe('502 upstream_unreachable')
    setupOf.clock.advance(900) // it waits for a probe, however long ejectMs is over
    expect(await setupOf.ask()).toBe('503 all_unhealthy')
    setupOf.gateway.stop()
    isUp = true
    setupOf.clock.advance(499)
    expect(await setupOf.ask()).toBe('503 all_unhealthy')
    setupOf.clock.advance(1)
    expect(await setupOf.ask()).toBe('a')
    expectQuiet(setupOf)
  })

  it('GWY-5 once probes are stopped, an upstream that they found unhealthy returns after ejectMs', async () => {
    const setupOf = probed(['a'], () => 503)
    for (let round = 0; round < 3; round += 1) await advance(setupOf, round === 0 ? 0 : 1000)
    expect(setupOf.lists()).toEqual([[], ['a'], []])
    setupOf.gateway.stop()
    setupOf.clock.advance(4999)
    expect(setupOf.lists()).toEqual([[], ['a'], []])
    setupOf.clock.advance(1)
    expect(setupOf.lists()).toEqual([['a'], [], []])
    expectQuiet(setupOf)
  })

  it('GWY-5 an upstream ejected before probes run returns by their success only once they do', async () => {
    let isReady = false
    const setupOf = setup(['a'], {
      probes: { ...PROBES, rise: 1 },
      ejection: { ejectMs: 500 },
      heartbeatTimeoutMs: 100_000,
    })
    setupOf.network.at(originOf('a'), undefined)
    await setupOf.ask()
    setupOf.network.at(originOf('a'), () => new Response('', { status: isReady ? 200 : 503 }))
    setupOf.gateway.start()
    for (let round = 0; round < 3; round += 1) await advance(setupOf, 1000)
    expect(setupOf.lists()).toEqual([[], ['a'], []])
    isReady = true
    await advance(setupOf, 1000)
    expect(setupOf.lists()).toEqual([['a'], [], []])
    expectQuiet(setupOf)
  })

  it('GWY-5 a probe that began before the connect error cannot bring the upstream back', async () => {
    const hang = barrier<number>()
    const setupOf = setup(['a'], { probes: { intervalMs: 1000, rise: 1 } })
    setupOf.network.at(originOf('a'), async (request) => {
      if (request.url.endsWith('/readyz')) return new Response('', { status: await hang.promise })
      throw Object.assign(new TypeError('x'), { code: 'ECONNREFUSED' })
    })
    setupOf.gateway.start()
    await advance(setupOf, 0)
    expect(await setupOf.ask()).toBe('502 upstream_unreachable')
    hang.resolve(200)
    await flush()
    expect(setupOf.lists()).toEqual([[], ['a'], []])
    expectQuiet(setupOf)
  })

  it('GWY-5 a fresh register ends an ejection', async () => {
    const setupOf = setup(['a'])
    setupOf.network.at(originOf('a'), undefined)
    await setupOf.ask()
    expect(setupOf.lists()).toEqual([[], ['a'], []])
    setupOf.register('a')
    expect(setupOf.lists()).toEqual([['a'], [], []])
  })
})
