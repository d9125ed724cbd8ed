import { describe, expect, it } from 'vitest'
import {
  createGateway,
  GatewayInputError,
  UpstreamConflictError,
  type UpstreamEvent,
  UpstreamRuleError,
} from '../../src/gateway.ts'
import { expectQuiet, originOf, setup } from './support.ts'

/** What a registry in this process throws for one more event. */
function errorOf(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  return undefined
}

function ruleOf(run: () => unknown): string | undefined {
  const error = errorOf(run)
  return error instanceof UpstreamRuleError ? error.rule : undefined
}

/** An event as JavaScript without types would hand it in. */
function untyped(event: object): UpstreamEvent[] {
  return JSON.parse(JSON.stringify([event]))
}

describe('events', () => {
  it('GWY-1 a register creates an upstream with the defaults for what it leaves out', () => {
    const { gateway } = setup(['a'])
    expect(gateway.upstreams.get('a')).toMatchObject({
      url: 'http://a.test',
      generation: 0,
      weight: 1,
      warmupMs: 0,
      labels: {},
      props: {},
      lease: 'live',
      health: 'unknown',
      draining: null,
    })
  })

  it('GWY-1 an unknown, missing or wrongly cased type is refused with the whole batch', () => {
    const { gateway, lists } = setup(['a'])
    const { revision } = gateway.upstreams
    for (const type of [
      'REGISTER',
      'Draining',
      'drain',
      '',
      null,
      undefined,
      7,
      '__proto__',
      'constructor',
      'toString',
    ]) {
      const batch = [
        ...untyped({ type: 'register', id: 'b', url: originOf('b') }),
        ...untyped({ type, id: 'a', url: originOf('a') }),
      ]
      const error = errorOf(() => gateway.upstreams.apply(batch))
      expect(error, String(type)).toBeInstanceOf(GatewayInputError)
      expect(error, String(type)).toMatchObject({ unknownType: true, issues: [{ pointer: '/events/1/type' }] })
    }
    expect(lists()).toEqual([['a'], [], []])
    expect(gateway.upstreams.revision).toBe(revision)
  })

  it('GWY-1 a batch in which one event does not fit changes nothing, whatever stands before it', () => {
    const { gateway, lists } = setup(['a'])
    const { revision } = gateway.upstreams
    const error = errorOf(() =>
      gateway.upstreams.apply([
        { type: 'register', id: 'b', url: originOf('b') },
        { type: 'draining', id: 'a' },
        { type: 'heartbeat', id: 'gone' },
      ]),
    )
    expect(error).toMatchObject({ rule: 'unknown_upstream', id: 'gone', index: 2 })
    expect(lists()).toEqual([['a'], [], []])
    expect(gateway.upstreams.revision).toBe(revision)
  })

  it('GWY-1 an event is judged by what those before it in its batch have done', () => {
    const { gateway, lists } = setup()
    gateway.upstreams.apply([
      { type: 'register', id: 'a', url: originOf('a'), generation: 1 },
      { type: 'draining', id: 'a', generation: 1 },
      { type: 'offline', id: 'a', generation: 1 },
      { type: 'register', id: 'a', url: originOf('other'), generation: 1 },
      { type: 'heartbeat', id: 'a', generation: 1 },
    ])
    expect(lists()).toEqual([['a'], [], []])
    expect(
      ruleOf(() =>
        gateway.upstreams.apply([
          { type: 'offline', id: 'a' },
          { type: 'heartbeat', id: 'a' },
        ]),
      ),
    ).toBe('unknown_upstream')
    expect(lists()).toEqual([['a'], [], []])
  })

  it('GWY-1 every malformed member is named with its pointer', () => {
    const { gateway } = setup()
    const wrong = [
      [{ type: 'register', id: '', url: 'x' }, ['/events/0/id', '/events/0/url']],
      [{ type: 'register', id: 'a b', url: originOf('a') }, ['/events/0/id']],
      [{ type: 'register', id: 'a' }, ['/events/0/url']],
      [{ type: 'register', id: 'a', url: originOf('a'), weight: 0 }, ['/events/0/weight']],
      [
        { type: 'register', id: 'a', url: originOf('a'), weight: 1.5, warmupMs: -1 },
        ['/events/0/weight', '/events/0/warmupMs'],
      ],
      [{ type: 'register', id: 'a', url: originOf('a'), generation: -1 }, ['/events/0/generation']],
      [{ type: 'register', id: 'a', url: originOf('a'), labels: { zone: 1 } }, ['/events/0/labels']],
      [{ type: 'register', id: 'a', url: originOf('a'), props: [] }, ['/events/0/props']],
      [{ type: 'register', id: 'a', url: originOf('a'), props: { long: 'x'.repeat(9000) } }, ['/events/0/props']],
      [{ type: 'draining', id: 'a', props: {} }, ['/events/0/props']],
      [{ type: 'offline', id: 'a', url: originOf('a') }, ['/events/0/url']],
    ] as const
    for (const [event, pointers] of wrong) {
      const error = errorOf(() => gateway.upstreams.apply(untyped(event)))
      expect(error).toBeInstanceOf(GatewayInputError)
      const issues = error instanceof GatewayInputError ? error.issues : []
      expect(issues.map(({ pointer }) => pointer)).toEqual(pointers)
      expect(error).toMatchObject({ unknownType: false })
    }
    expect(errorOf(() => gateway.upstreams.apply([]))).toBeInstanceOf(GatewayInputError)
  })

  it('GWY-1 a URL must be absolute, http or https, without credentials, query and fragment', () => {
    const { gateway } = setup()
    for (const url of [
      '/a',
      'a.test',
      'ftp://a.test',
      'file:///etc/passwd',
      'javascript:alert(1)',
      'http://me@a.test',
      'http://me:secret@a.test',
      'http://a.test?x=1',
      'http://a.test/#f',
      'http://',
    ]) {
      const error = errorOf(() => gateway.upstreams.apply([{ type: 'register', id: 'a', url }]))
      expect(error, url).toMatchObject({ issues: [{ pointer: '/events/0/url' }] })
      expect(String(error)).not.toContain('secret')
    }
    for (const [url, base] of [
      ['http://a.test', 'http://a.test'],
      ['HTTPS://A.test:443/', 'https://a.test'],
      ['http://a.test:8080/base/', 'http://a.test:8080/base'],
      ['http://[::1]:3000', 'http://[::1]:3000'],
    ] as const) {
      gateway.upstreams.apply([
        { type: 'offline', id: 'a' },
        { type: 'register', id: 'a', url },
      ])
      expect(gateway.upstreams.get('a')?.url).toBe(base)
    }
  })

  it('GWY-1 ids, labels and props may be named like object internals, and are copies', () => {
    const { gateway, lists } = setup(['__proto__', 'constructor'])
    const props = { list: [1], constructor: 'x' }
    gateway.upstreams.apply([
      { type: 'register', id: 'toString', url: originOf('t'), labels: { constructor: 'l' }, props },
    ])
    props.list.push(2)
    expect(lists()[0]).toEqual(['__proto__', 'constructor', 'toString'])
    expect(gateway.upstreams.get('toString')?.labels).toEqual({ constructor: 'l' })
    expect(gateway.upstreams.get('toString')?.props).toEqual({ list: [1], constructor: 'x' })
    expect(gateway.upstreams.get('valueOf')).toBeUndefined()
  })

  it('GWY-1 the number of upstreams is bounded; at the bound the one expired longest makes room', () => {
    const { gateway, clock, register, lists } = setup([], { maxUpstreams: 2, heartbeatTimeoutMs: 100 })
    register('a')
    clock.advance(10)
    register('b')
    expect(ruleOf(() => register('c'))).toBe('too_many_upstreams')
    clock.advance(90)
    register('c')
    expect(lists()).toEqual([['b', 'c'], [], []])
    expect(ruleOf(() => register('d'))).toBe('too_many_upstreams')
    gateway.upstreams.apply([
      { type: 'offline', id: 'b' },
      { type: 'register', id: 'd', url: originOf('d') },
    ])
    expect(lists()).toEqual([['c', 'd'], [], []])
  })
})

describe('generations', () => {
  it('GWY-2 a register of an older generation is refused, and the newer stays as it is', () => {
    const { gateway, register, drain } = setup()
    register('a', { generation: 5 })
    drain('a')
    expect(ruleOf(() => register('a', { generation: 4 }))).toBe('stale_generation')
    expect(gateway.upstreams.get('a')).toMatchObject({ generation: 5, draining: { sinceMs: 0 } })
  })

  it('GWY-2 a register of the same generation clears the marker, and so does a newer', () => {
    const { gateway, register, drain } = setup()
    for (const generation of [5, 5, 6]) {
      register('a', { generation })
      expect(gateway.upstreams.get('a')).toMatchObject({ generation, draining: null })
      drain('a', generation)
      expect(gateway.upstreams.get('a')?.draining).toEqual({ sinceMs: 0 })
    }
    register('a') // names no generation: the one it finds
    expect(gateway.upstreams.get('a')).toMatchObject({ generation: 6, draining: null })
  })

  it('GWY-2 late words of an older generation touch nothing of its replacement', () => {
    const { gateway, clock, register, lists } = setup([], { heartbeatTimeoutMs: 100 })
    register('a', { generation: 1 })
    register('a', { generation: 2 })
    clock.advance(60)
    for (const type of ['draining', 'offline', 'heartbeat'] as const) {
      expect(ruleOf(() => gateway.upstreams.apply([{ type, id: 'a', generation: 1 }]))).toBe('stale_generation')
    }
    expect(lists()).toEqual([['a'], [], []])
    clock.advance(40) // the old heartbeat did not extend the lease
    expect(lists()).toEqual([[], ['a'], []])
  })

  it('GWY-2 words of a generation that never registered touch nothing of the one that did', () => {
    const { gateway, register, lists } = setup()
    register('a', { generation: 1 })
    const before = JSON.stringify(gateway.upstreams.list())
    for (const type of ['draining', 'heartbeat'] as const) {
      expect(ruleOf(() => gateway.upstreams.apply([{ type, id: 'a', generation: 2 }]))).toBe('unknown_upstream')
    }
    expect(gateway.upstreams.apply([{ type: 'offline', id: 'a', generation: 2 }]).events).toEqual([
      { type: 'offline', id: 'a', draining: false, active: 0 },
    ])
    expect(JSON.stringify(gateway.upstreams.list())).toBe(before)
    gateway.upstreams.apply([{ type: 'heartbeat', id: 'a', generation: 1 }])
    register('a', { generation: 2, url: originOf('b') })
    expect(gateway.upstreams.get('a')).toMatchObject({ generation: 2, url: 'http://b.test' })
    expect(lists()).toEqual([['a'], [], []])
  })

  it('GWY-2 an upstream configured without a generation is drained and taken out by whoever is behind its id', () => {
    const { gateway, drain, register, lists } = setup()
    gateway.upstreams.sync([{ id: 'a', url: originOf('a') }])
    drain('a', 7)
    expect(gateway.upstreams.get('a')).toMatchObject({ generation: 0, draining: { sinceMs: 0 } })
    register('a', { generation: 7, url: originOf('b') }) // drained is not yet registered: it may be elsewhere
    expect(gateway.upstreams.get('a')).toMatchObject({ generation: 7, url: 'http://b.test', draining: null })
    gateway.upstreams.sync([])
    gateway.upstreams.sync([{ id: 'a', url: originOf('a') }])
    gateway.upstreams.apply([{ type: 'offline', id: 'a', generation: 7 }])
    expect(lists()).toEqual([[], [], []])
  })

  it('GWY-2 within one batch too, an offline of a generation that never registered leaves the other', () => {
    const { gateway, lists } = setup()
    const event = { id: 'a', url: originOf('a') }
    gateway.upstreams.apply([
      { type: 'register', ...event, generation: 1 },
      { type: 'offline', id: 'a', generation: 2 },
      { type: 'heartbeat', id: 'a', generation: 1 },
    ])
    expect(lists()).toEqual([['a'], [], []])
    gateway.upstreams.apply([
      { type: 'register', ...event, generation: 2 },
      { type: 'offline', id: 'a', generation: 2 },
    ])
    expect(lists()).toEqual([[], [], []])
  })

  it('GWY-2 an id with another URL is refused, unless a newer generation registers it', () => {
    const { gateway, register } = setup()
    register('a', { generation: 1 })
    expect(ruleOf(() => register('a', { generation: 1, url: originOf('b') }))).toBe('url_conflict')
    expect(ruleOf(() => register('a', { url: originOf('b') }))).toBe('url_conflict')
    expect(gateway.upstreams.get('a')?.url).toBe('http://a.test')
    register('a', { generation: 1, url: 'http://a.test/' }) // the same one, written otherwise
    register('a', { generation: 2, url: originOf('b') })
    expect(gateway.upstreams.get('a')?.url).toBe('http://b.test')
  })
})

describe('the marker', () => {
  it('GWY-2 no heartbeat, weight, warm-up, label or prop clears the marker, and setting it loses none of them', () => {
    const { gateway, register, lists } = setup()
    register('a', { weight: 3 })
    const about = { weight: 4, warmupMs: 7, labels: { zone: 'x' }, props: { note: 1, draining: false } }
    gateway.upstreams.apply([{ type: 'heartbeat', id: 'a', ...about }])
    gateway.upstreams.apply([{ type: 'draining', id: 'a', reason: 'deploy' }])
    expect(gateway.upstreams.get('a')).toMatchObject(about)
    gateway.upstreams.apply([{ type: 'heartbeat', id: 'a' }])
    gateway.upstreams.apply([
      { type: 'heartbeat', id: 'a', weight: 9, labels: {}, props: { draining: false }, warmupMs: 0 },
    ])
    expect(gateway.upstreams.get('a')).toMatchObject({ weight: 9, draining: { sinceMs: 0, reason: 'deploy' } })
    expect(lists()).toEqual([[], [], ['a']])
  })

  it('GWY-2 setting the marker twice is the same as once: the first time and reason stay', () => {
    const { gateway, clock, register } = setup()
    register('a')
    clock.advance(5)
    gateway.upstreams.apply([{ type: 'draining', id: 'a', reason: 'first' }])
    const { revision } = gateway.upstreams
    clock.advance(5)
    gateway.upstreams.apply([{ type: 'draining', id: 'a', reason: 'second' }])
    expect(gateway.upstreams.get('a')?.draining).toEqual({ sinceMs: 5, reason: 'first' })
    expect(gateway.upstreams.revision).toBe(revision)
  })

  it('GWY-2 offline removes a draining upstream; a heartbeat or draining after that is unknown and creates nothing', () => {
    const { gateway, register, drain, lists } = setup()
    register('a')
    drain('a')
    gateway.upstreams.apply([{ type: 'offline', id: 'a' }])
    expect(ruleOf(() => gateway.upstreams.apply([{ type: 'heartbeat', id: 'a' }]))).toBe('unknown_upstream')
    expect(ruleOf(() => drain('a'))).toBe('unknown_upstream')
    expect(gateway.upstreams.apply([{ type: 'offline', id: 'a' }]).events).toEqual([
      { type: 'offline', id: 'a', draining: false, active: 0 },
    ])
    expect(lists()).toEqual([[], [], []])
  })

  it('GWY-2 replaying every event that an instance ever sent leaves what its last one says', () => {
    const { gateway, lists } = setup()
    const history: UpstreamEvent[] = [
      { type: 'register', id: 'a', url: originOf('a'), generation: 1 },
      { type: 'heartbeat', id: 'a', generation: 1 },
      { type: 'draining', id: 'a', generation: 1 },
    ]
    for (const event of [...history, ...history]) gateway.upstreams.apply([event])
    expect(lists()).toEqual([[], [], ['a']])
    gateway.upstreams.apply([{ type: 'register', id: 'a', url: originOf('a'), generation: 2 }])
    for (const event of history) expect(ruleOf(() => gateway.upstreams.apply([event]))).toBe('stale_generation')
    expect(lists()).toEqual([['a'], [], []])
  })
})

describe('sync', () => {
  it('GWY-8 a sync replaces the whole set: what it omits is gone, what it keeps keeps lease and counts', () => {
    const { gateway, clock, lists, register } = setup(['a', 'b'], { heartbeatTimeoutMs: 100 })
    register('c')
    gateway.upstreams.sync([
      { id: 'b', url: originOf('b'), weight: 2 },
      { id: 'd', url: originOf('d') },
    ])
    expect(lists()).toEqual([['b', 'd'], [], []])
    expect(gateway.upstreams.get('b')?.weight).toBe(2)
    clock.advance(100) // b was registered and must send heartbeats; d never did
    expect(lists()).toEqual([['d'], ['b'], []])
    gateway.upstreams.sync([{ id: 'b', url: originOf('b') }])
    expect(lists()).toEqual([[], ['b'], []]) // only a register revives a lease
    gateway.upstreams.sync([])
    expect(lists()).toEqual([[], [], []])
  })

  it('GWY-8 a sync from a revision that is no longer current changes nothing', () => {
    const { gateway, lists } = setup(['a'])
    const { revision } = gateway.upstreams
    gateway.upstreams.sync([{ id: 'b', url: originOf('b') }], revision)
    const error = errorOf(() => gateway.upstreams.sync([{ id: 'c', url: originOf('c') }], revision))
    expect(error).toBeInstanceOf(UpstreamConflictError)
    expect(error).toMatchObject({ expected: revision, actual: gateway.upstreams.revision })
    expect(lists()).toEqual([['b'], [], []])
  })

  it('GWY-2 a sync sets the marker by its field or as a prop, and keeps the first time and the other props', () => {
    const { gateway, clock, lists } = setup()
    const url = originOf('a')
    const notes: readonly { draining?: boolean | { reason: string }; props?: Record<string, unknown> }[] = [
      { draining: true },
      { draining: { reason: 'x' } },
      { props: { draining: true, note: 1 } },
      { props: { draining: 'true' } },
    ]
    for (const note of notes) {
      gateway.upstreams.sync([{ id: 'a', url, ...note }])
      expect(gateway.upstreams.get('a')?.draining?.sinceMs).toBe(0)
      clock.advance(1)
    }
    gateway.upstreams.sync([{ id: 'a', url, props: { draining: true, note: 1 } }])
    expect(gateway.upstreams.get('a')?.props).toEqual({ note: 1 })
    expect(lists()).toEqual([[], [], ['a']])
  })

  it('GWY-2 a sync without the marker, or with it false, clears it; the health of before is forgotten', () => {
    const { gateway, drain, lists } = setup(['a'])
    const url = originOf('a')
    for (const props of [{}, { draining: false }, { draining: 'false' }]) {
      drain('a')
      expect(lists()).toEqual([[], [], ['a']])
      gateway.upstreams.sync([{ id: 'a', url, props }])
      expect(lists()).toEqual([['a'], [], []])
      expect(gateway.upstreams.get('a')?.health).toBe('unknown')
    }
  })

  it('GWY-2 a marker that is neither true nor false is refused, never taken for absent', () => {
    const { gateway, drain, lists } = setup(['a'])
    drain('a')
    for (const draining of ['TRUE', 'yes', 1, null, {}]) {
      const error = errorOf(() => gateway.upstreams.sync([{ id: 'a', url: originOf('a'), props: { draining } }]))
      expect(error).toBeInstanceOf(GatewayInputError)
    }
    expect(lists()).toEqual([[], [], ['a']])
  })

  it('GWY-2 an edit of the listed set keeps every marker', () => {
    const { gateway, drain, lists } = setup(['a', 'b'])
    drain('a')
    gateway.upstreams.apply([{ type: 'draining', id: 'b', reason: 'why' }])
    const { desired, revision } = gateway.upstreams.list()
    gateway.upstreams.sync([...desired, { id: 'c', url: originOf('c') }], revision)
    expect(lists()).toEqual([['c'], [], ['a', 'b']])
    expect(gateway.upstreams.get('b')?.draining?.reason).toBe('why')
  })

  it('GWY-8 a set with an id twice, an older generation or too many members changes nothing', () => {
    const { gateway, register, lists } = setup([], { maxUpstreams: 2 })
    register('a', { generation: 3 })
    const [a, b, c] = ['a', 'b', 'c'].map((id) => ({ id, url: originOf(id) }))
    if (a === undefined || b === undefined || c === undefined) return expect.unreachable()
    expect(errorOf(() => gateway.upstreams.sync([b, b]))).toMatchObject({ issues: [{ pointer: '/upstreams/1/id' }] })
    expect(ruleOf(() => gateway.upstreams.sync([{ ...a, generation: 2 }]))).toBe('stale_generation')
    expect(ruleOf(() => gateway.upstreams.sync([a, b, c]))).toBe('too_many_upstreams')
    expect(lists()).toEqual([['a'], [], []])
  })
})

describe('leases', () => {
  it('GWY-6 a lease ends after heartbeatTimeoutMs without heartbeats, and only a register brings it back', () => {
    const { gateway, clock, register, lists } = setup(['a'], { heartbeatTimeoutMs: 100 })
    clock.advance(99)
    gateway.upstreams.apply([{ type: 'heartbeat', id: 'a' }])
    clock.advance(99)
    expect(lists()).toEqual([['a'], [], []])
    clock.advance(1)
    expect(lists()).toEqual([[], ['a'], []])
    expect(ruleOf(() => gateway.upstreams.apply([{ type: 'heartbeat', id: 'a' }]))).toBe('unknown_upstream')
    expect(lists()).toEqual([[], ['a'], []])
    register('a')
    expect(lists()).toEqual([['a'], [], []])
  })

  it('GWY-6 a heartbeat at the very instant of expiry is too late, whether or not a timer ran', () => {
    const { gateway, clock } = setup(['a'], { heartbeatTimeoutMs: 100 })
    clock.advance(100)
    expect(ruleOf(() => gateway.upstreams.apply([{ type: 'heartbeat', id: 'a' }]))).toBe('unknown_upstream')
  })

  it('GWY-6 one timer serves all leases, and a heartbeat starts none', () => {
    const setupOf = setup([], { heartbeatTimeoutMs: 100 })
    const { gateway, clock, register } = setupOf
    gateway.start()
    expect(clock.pending).toBe(0)
    for (let count = 0; count < 50; count += 1) {
      register(`u${count}`)
      clock.advance(1)
    }
    expect(clock.pending).toBe(1)
    const { timersStarted } = clock
    for (let count = 0; count < 50; count += 1) gateway.upstreams.apply([{ type: 'heartbeat', id: `u${count}` }])
    expect(clock.timersStarted).toBe(timersStarted)
    const { revision } = gateway.upstreams
    clock.advance(99)
    expect(gateway.upstreams.revision).toBe(revision)
    clock.advance(1) // all fell due together, with nobody asking
    expect(gateway.upstreams.revision).toBe(revision + 1)
    expectQuiet(setupOf)
  })

  it('GWY-6 a draining upstream whose lease ended stays in the draining list', () => {
    const { clock, drain, lists } = setup(['a'], { heartbeatTimeoutMs: 100 })
    drain('a')
    clock.advance(100)
    expect(lists()).toEqual([[], [], ['a']])
  })
})

describe('watching', () => {
  it('GWY-1 a listener hears of each change once, within its step; one that throws fails nobody', () => {
    const { gateway, register, drain, lists } = setup()
    const heard: number[] = []
    gateway.upstreams.onChange(() => {
      throw new Error('hook')
    })
    const end = gateway.upstreams.onChange(() => heard.push(gateway.upstreams.revision))
    register('a')
    gateway.upstreams.apply([{ type: 'heartbeat', id: 'a' }]) // changes nothing that is configured
    gateway.upstreams.apply([{ type: 'heartbeat', id: 'a', weight: 1, props: {} }]) // nor does this
    gateway.upstreams.apply([{ type: 'heartbeat', id: 'a', weight: 2 }])
    drain('a')
    end()
    register('b')
    expect(heard).toEqual([1, 2, 3])
    expect(lists()).toEqual([['b'], [], ['a']])
  })
})

describe('construction', () => {
  it('RUN-1 a gateway reads no clock, starts no timer and draws nothing until it is used', () => {
    let draws = 0
    const random = (): number => {
      draws += 1
      return 0
    }
    const { gateway, clock, app } = setup([], {
      random,
      probes: {},
      upstreams: [{ id: 'a', url: originOf('a'), draining: true }],
    })
    expect(app.routes.length).toBeGreaterThan(0)
    expect([clock.reads, clock.timersStarted, draws]).toEqual([0, 0, 0])
    expect(gateway.upstreams.list().draining).toHaveLength(1)
  })

  it('GWY-1 an option out of its bounds is refused by name', () => {
    for (const options of [
      { heartbeatTimeoutMs: 0 },
      { heartbeatTimeoutMs: 2 ** 31 },
      { maxUpstreams: 0.5 },
      { probes: { rise: 0 } },
      { probes: { path: 'ready' } },
      { stallTimeoutMs: Number.NaN },
      { ejection: { connectErrors: 0 } },
    ]) {
      expect(() => createGateway(options)).toThrow(RangeError)
    }
    const algorithm: ReturnType<typeof JSON.parse> = 'round-robin'
    expect(() => createGateway({ algorithm })).toThrow(/algorithm is round-robin, not one of weighted-round-robin/)
    expect(() => createGateway().proxy({ timeoutMs: 0 })).toThrow('Cannot proxy: timeoutMs is 0')
    expect(() => createGateway({ upstreams: [{ id: 'a', url: 'nope' }] })).toThrow(GatewayInputError)
  })
})
