import { AdmissionCore } from '../../src/admission-core.ts'
import type { Contestant, Exact, Group, Ratio, Subject } from '../engine.ts'
import { StillClock } from '../still-clock.ts'
import { immediate, rotatingLeases } from './leases.ts'
import { AMPLE, CONTRACT, METHOD, THREE_SCOPES } from './limits.ts'

/** Keys are visited with this stride, which has no factor in common with their number: every key, in no good order. */
const STRIDE = 7919

/** The keys of a case, handed out one by one; also as fresh strings, cut from a header as a server gets them. */
class Keys {
  readonly #keys: readonly string[]
  #at: number

  constructor(count: number) {
    this.#keys = Array.from({ length: count }, (_, index) => `tenant-${index}`)
    this.#at = 0
  }

  next(): string {
    this.#at = (this.#at + STRIDE) % this.#keys.length
    return this.#keys[this.#at] ?? ''
  }

  nextFresh(): string {
    return `Bearer ${this.next()}`.slice(7)
  }
}

function partitioned(keys: number, maxPartitions: number, next: (keys: Keys) => string, more: Exact = {}): Subject {
  const clock = new StillClock()
  const source = new Keys(keys)
  const tenant = { maxPartitions, concurrency: AMPLE }
  const core = new AdmissionCore({
    clock,
    selectors: { tenant: () => next(source) },
    config: { ...THREE_SCOPES, global: { concurrency: AMPLE, partitions: { tenant } } },
  })
  const bound = core.route(CONTRACT, METHOD)
  const exact = { clockReads: 1, maxTimersPer1000: 0, ...more }
  const subject = rotatingLeases(core, bound, clock, exact)
  subject.run(keys)
  return subject
}

/** What a look-up of the same keys costs alone: the entry is found and written to. */
function lookUp(name: string, keys: number): Contestant {
  return {
    name,
    make() {
      const source = new Keys(keys)
      const entries = new Map<string, { seen: number }>()
      for (let left = keys; left > 0; left -= 1) entries.set(source.next(), { seen: 0 })
      return {
        run(n) {
          let count = 0
          for (let left = n; left > 0; left -= 1) {
            const entry = entries.get(source.next())
            if (entry === undefined) continue
            entry.seen = left
            count += 1
          }
          return count
        },
        expected: (n) => n,
      }
    },
  }
}

const plain: Contestant = { name: 'core.immediate.3', make: () => immediate(THREE_SCOPES, {}) }

const retained = (keys: Keys): string => keys.next()
const fresh = (keys: Keys): string => keys.nextFresh()

/** A thousand partitions that all calls find; each way of getting a key in a process of its own. */
function warm(name: string, next: (keys: Keys) => string, goal: Partial<Ratio> = {}, exact: Exact = {}): Group {
  return {
    name,
    contestants: () => [plain, lookUp('map.get.1k', 1000), { name, make: () => partitioned(1000, 2000, next, exact) }],
    ratios: [{ of: name, to: ['core.immediate.3', 'map.get.1k'], ...goal }],
  }
}

export const partitionGroups: readonly Group[] = [
  warm('core.partition.hit.1k', retained, { goal: 'P7', max: 2 }, { maxBytes: 40 }),
  warm('core.partition.hit.1k.fresh', fresh),
]

export const coldPartitionGroup: Group = {
  name: 'core.partition.cold',
  contestants: (size) => {
    const many = size === 'full' ? 100_000 : 2000
    return [
      plain,
      lookUp('map.get.100k', many),
      { name: 'core.partition.hit.100k', make: () => partitioned(many, 2 * many, retained) },
      { name: 'core.partition.churn', make: () => partitioned(many, 1000, retained) },
    ]
  },
  ratios: [
    { of: 'core.partition.hit.100k', to: ['core.immediate.3', 'map.get.100k'] },
    { of: 'core.partition.churn', to: ['core.immediate.3', 'map.get.100k'] },
  ],
}
