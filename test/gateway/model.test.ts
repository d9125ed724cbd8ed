import { describe, expect, it } from 'vitest'
import {
  createGateway,
  GatewayInputError,
  type UpstreamEvent,
  type UpstreamInput,
  UpstreamRuleError,
} from '../../src/gateway.ts'
import { ManualClock } from '../../src/manual-clock.ts'
import { type Random, randomFrom } from '../support/random.ts'

/** What is said of one upstream, written down as plainly as GWY-2 says it; health is left to the probe tests. */
interface Naive {
  url: string
  generation: number
  weight: number
  note: number | undefined
  leaseUntilMs: number
  drainingSinceMs: number | undefined
}

const TIMEOUT_MS = 50
const IDS = ['a', 'b', 'c', '__proto__']
const URLS = ['http://one.test', 'http://two.test']

class Model {
  nowMs = 0
  readonly byId: Map<string, Naive> = new Map()

  isLive(id: string): boolean {
    const known = this.byId.get(id)
    return known !== undefined && this.nowMs < known.leaseUntilMs
  }

  /** Answers the rule that refuses the event, if one does; changes nothing then. */
  apply(event: UpstreamEvent): string | undefined {
    const known = this.byId.get(event.id)
    const { generation } = event
    if (known !== undefined && generation !== undefined && generation < known.generation) return 'stale_generation'
    switch (event.type) {
      case 'register': {
        const next = generation ?? known?.generation ?? 0
        if (known !== undefined && known.url !== event.url && next === known.generation) return 'url_conflict'
        this.byId.set(event.id, {
          url: event.url,
          generation: next,
          weight: event.weight ?? 1,
          note: noteOf(event.props),
          leaseUntilMs: this.nowMs + TIMEOUT_MS,
          drainingSinceMs: undefined,
        })
        return undefined
      }
      case 'heartbeat':
        if (known === undefined || !this.isLive(event.id) || (generation ?? 0) > known.generation)
          return 'unknown_upstream'
        known.leaseUntilMs = this.nowMs + TIMEOUT_MS
        if (event.weight !== undefined) known.weight = event.weight
        if (event.props !== undefined) known.note = noteOf(event.props)
        return undefined
      case 'draining':
        if (known === undefined || isStranger(known, generation)) return 'unknown_upstream'
        known.drainingSinceMs ??= this.nowMs
        return undefined
      case 'offline':
        if (known !== undefined && !isStranger(known, generation)) this.byId.delete(event.id)
        return undefined
    }
  }

  sync(set: readonly UpstreamInput[]): string | undefined {
    for (const { id, generation } of set) {
      const known = this.byId.get(id)
      if (known !== undefined && generation !== undefined && generation < known.generation) return 'stale_generation'
    }
    const former = new Map(this.byId)
    this.byId.clear()
    for (const { id, url, generation, weight, props, draining } of set) {
      const known = former.get(id)
      const next = generation ?? known?.generation ?? 0
      const isSame = known !== undefined && known.url === url && known.generation === next
      const isDraining = draining === true || props?.draining === true
      this.byId.set(id, {
        url,
        generation: next,
        weight: weight ?? 1,
        note: noteOf(props),
        leaseUntilMs: isSame ? known.leaseUntilMs : Number.POSITIVE_INFINITY,
        drainingSinceMs: isDraining ? (known?.drainingSinceMs ?? this.nowMs) : undefined,
      })
    }
    return undefined
  }

  copy(): Model {
    const copy = new Model()
    copy.nowMs = this.nowMs
    for (const [id, known] of this.byId) copy.byId.set(id, { ...known })
    return copy
  }
}

/** A process that never registered, where another did; generation 0 is whoever is there. */
function isStranger(known: Naive, generation = 0): boolean {
  return known.generation !== 0 && generation > known.generation
}

function noteOf(props: { readonly [name: string]: unknown } | undefined): number | undefined {
  return typeof props?.note === 'number' ? props.note : undefined
}

function pick<T>(random: Random, from: readonly T[]): T {
  const one = from[random(from.length)]
  if (one === undefined) throw new Error('nothing to pick from')
  return one
}

function maybe<Name extends string, T>(random: Random, name: Name, value: T): { [key in Name]?: T } | object {
  return random(2) === 0 ? {} : { [name]: value }
}

function randomEvent(random: Random): UpstreamEvent {
  const whose = { id: pick(random, IDS), ...maybe(random, 'generation', random(3)) }
  const settings = { ...maybe(random, 'weight', 1 + random(3)), ...maybe(random, 'props', { note: random(9) }) }
  switch (random(8)) {
    case 0:
    case 1:
    case 2:
      return { type: 'register', ...whose, url: pick(random, URLS), ...settings }
    case 3:
    case 4:
      return { type: 'heartbeat', ...whose, ...settings }
    case 5:
    case 6:
      return { type: 'draining', ...whose }
    default:
      return { type: 'offline', ...whose }
  }
}

function randomSet(random: Random): UpstreamInput[] {
  return IDS.filter(() => random(2) === 0).map((id) => ({
    id,
    url: pick(random, URLS),
    ...maybe(random, 'generation', random(3)),
    ...maybe(random, 'draining', random(2) === 0),
    ...maybe(random, 'props', { note: random(9), ...maybe(random, 'draining', random(2) === 0) }),
  }))
}

function ruleOf(run: () => unknown): string | undefined {
  try {
    run()
    return undefined
  } catch (error) {
    if (error instanceof UpstreamRuleError) return error.rule
    throw error
  }
}

describe('random walks', () => {
  for (const seed of [1, 2, 3]) {
    it(`GWY-2 registers, heartbeats, markers, syncs and time leave what the rules say, step by step (seed ${seed})`, () => {
      const random = randomFrom(seed)
      const clock = new ManualClock()
      const gateway = createGateway({ clock, heartbeatTimeoutMs: TIMEOUT_MS })
      let model = new Model()
      let { revision } = gateway.upstreams
      for (let step = 0; step < 1000; step += 1) {
        const where = `seed ${seed}, step ${step}`
        const before = JSON.stringify(gateway.upstreams.list())
        const next = model.copy()
        let expected: string | undefined
        let actual: string | undefined
        const kind = random(10)
        if (kind < 7) {
          const batch = Array.from({ length: 1 + random(3) }, () => randomEvent(random))
          for (const event of batch) expected ??= next.apply(event)
          actual = ruleOf(() => gateway.upstreams.apply(batch))
        } else if (kind === 7) {
          const set = randomSet(random)
          expected = next.sync(set)
          actual = ruleOf(() => gateway.upstreams.sync(set))
        } else {
          const ms = random(30)
          clock.advance(ms)
          next.nowMs += ms
        }
        expect(actual, where).toBe(expected)
        if (expected === undefined) model = next
        else expect(JSON.stringify(gateway.upstreams.list()), where).toBe(before)

        const { healthy, unhealthy, draining } = gateway.upstreams.list()
        const listed = [...healthy, ...unhealthy, ...draining]
        expect(new Set(listed.map(({ id }) => id)).size, where).toBe(listed.length) // disjoint
        expect(listed.map(({ id }) => id).sort(), where).toEqual([...model.byId.keys()].sort()) // and complete
        for (const [id, known] of model.byId) {
          const upstream = gateway.upstreams.get(id)
          expect(upstream, `${where}: ${id}`).toMatchObject({
            url: known.url,
            generation: known.generation,
            weight: known.weight,
            lease: model.isLive(id) ? 'live' : 'expired',
          })
          expect(upstream?.props.note, where).toBe(known.note)
          expect(upstream?.draining?.sinceMs, where).toBe(known.drainingSinceMs)
          const isSelectable = model.isLive(id) && known.drainingSinceMs === undefined
          expect(
            healthy.some((one) => one.id === id),
            where,
          ).toBe(isSelectable)
        }
        expect(gateway.upstreams.revision, where).toBeGreaterThanOrEqual(revision)
        revision = gateway.upstreams.revision
      }
    })
  }

  it('GWY-1 a batch of any junk changes nothing', () => {
    const random = randomFrom(6)
    const gateway = createGateway({ clock: new ManualClock() })
    gateway.upstreams.apply([{ type: 'register', id: 'a', url: 'http://one.test' }])
    const before = JSON.stringify(gateway.upstreams.list())
    for (let step = 0; step < 500; step += 1) {
      const event = randomEvent(random)
      const broken: UpstreamEvent = Object.assign({}, event, {
        [pick(random, ['type', 'id', 'surplus'])]: pick(random, [null, 7, '', {}]),
      })
      expect(() => gateway.upstreams.apply([event, broken])).toThrow(GatewayInputError)
    }
    expect(JSON.stringify(gateway.upstreams.list())).toBe(before)
  })
})
