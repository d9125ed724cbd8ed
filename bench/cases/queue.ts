import { Sema } from 'async-sema'
import { BulkheadPolicy } from 'cockatiel'
import pLimit from 'p-limit'
import PQueue from 'p-queue'
import type { Answer } from '../../src/admission/admit.ts'
import { AdmissionCore, type BoundRoute } from '../../src/admission-core.ts'
import { ManualClock } from '../../src/manual-clock.ts'
import type { Contestant, Group, Size } from '../engine.ts'
import { type CountingClock, StillClock } from '../still-clock.ts'
import { expectActive } from './leases.ts'
import { CONTRACT, METHOD, threeScopes } from './limits.ts'

const DELAY_MS = 1000

/** Work that is a promise and says in which turn it started: starts out of turn do not count. */
class Turns {
  #next = 0

  readonly job = async (turn: number): Promise<number> => {
    if (turn !== this.#next) return 0
    this.#next += 1
    return 1
  }

  begin(): void {
    this.#next = 0
  }
}

/** A queue behind a limit of one is filled and drained: the first call holds the permit, the others wait. */
function drained(name: string, depth: number, make: (turns: Turns) => (turn: number) => Promise<number>): Contestant {
  return {
    name: `${name}@${depth}`,
    make() {
      const turns = new Turns()
      const execute = make(turns)
      return {
        step: depth,
        async run(n) {
          let count = 0
          for (let left = n; left > 0; left -= depth) {
            turns.begin()
            const results: Promise<number>[] = []
            for (let turn = 0; turn < depth; turn += 1) results.push(execute(turn))
            for (const result of await Promise.all(results)) count += result
          }
          return count
        },
        expected: (n) => n,
      }
    },
  }
}

interface Single<C> {
  readonly core: AdmissionCore
  readonly clock: C
  readonly bound: BoundRoute
}

/** One permit in the global scope, as the peers have; room in the queue for everybody. */
function single<C extends CountingClock>(depth: number, clock: C): Single<C> {
  const queue = { maxQueuedCalls: depth, maxQueueDelayMs: DELAY_MS }
  const core = new AdmissionCore({ clock, config: { queue, global: { concurrency: 1 } } })
  return { core, clock, bound: core.route(CONTRACT, METHOD) }
}

function ours(depth: number, name = 'ours.queue', threeLevels = false): Contestant {
  return {
    name: `${name}@${depth}`,
    async make() {
      const { core, clock, bound } = single(depth, new StillClock())
      if (threeLevels) await core.update(threeScopes(1, { maxQueuedCalls: depth }))
      const contestant = drained('', depth, ({ job }) => async (turn) => {
        const answered = bound.admit()
        const answer = 'kind' in answered ? answered : await answered
        if (answer.kind === 'refused') return 0
        try {
          return await job(turn)
        } finally {
          answer.release()
        }
      })
      const exact = depth >= 1000 ? { maxTimersPer1000: 20 } : {}
      return { ...(await contestant.make()), clock, exact, verify: () => expectActive(core, 0) }
    },
  }
}

interface Peer {
  readonly name: string
  readonly contestant: (depth: number) => Contestant
  readonly max: number
}

const PEERS: readonly Peer[] = [
  {
    name: 'async-sema.queue',
    max: 1.1,
    contestant: (depth) =>
      drained('async-sema.queue', depth, ({ job }) => {
        const sema = new Sema(1, { capacity: depth })
        return async (turn) => {
          await sema.acquire()
          try {
            return await job(turn)
          } finally {
            sema.release()
          }
        }
      }),
  },
  {
    name: 'cockatiel.queue',
    max: 0.65,
    contestant: (depth) =>
      drained('cockatiel.queue', depth, ({ job }) => {
        const policy = new BulkheadPolicy(1, depth)
        return (turn) => policy.execute(() => job(turn))
      }),
  },
]

const OTHER_PEERS: readonly ((depth: number) => Contestant)[] = [
  (depth) =>
    drained('p-limit.queue', depth, ({ job }) => {
      const limit = pLimit(1)
      return (turn) => limit(job, turn)
    }),
  (depth) =>
    drained('p-queue.queue', depth, ({ job }) => {
      const queue = new PQueue({ concurrency: 1 })
      return (turn) => queue.add(() => job(turn))
    }),
]

const DEPTHS = [10, 1000, 10_000] as const
const DEPTHS_OF: { readonly [S in 'quick' | 'full']: readonly number[] } = { quick: [10, 1000], full: DEPTHS }

/** Ours beside one peer at one depth, in a process of their own. */
export const queueGroups: readonly Group[] = DEPTHS.flatMap((depth) =>
  PEERS.map(({ name, contestant, max }) => ({
    name: `queue.release@${depth}:${name}`,
    contestants: (size: Size) => (DEPTHS_OF[size].includes(depth) ? [ours(depth), contestant(depth)] : []),
    ratios: [{ of: `ours.queue@${depth}`, to: [`${name}@${depth}`], goal: 'P12', max }],
  })),
)

export const otherQueueGroup: Group = {
  name: 'queue.other',
  contestants: (size) =>
    (size === 'quick' ? [10] : [10, 1000]).flatMap((depth) => [ours(depth), ...OTHER_PEERS.map((peer) => peer(depth))]),
  ratios: [10, 1000].flatMap((depth) => [
    { of: `ours.queue@${depth}`, to: [`p-limit.queue@${depth}`] },
    { of: `ours.queue@${depth}`, to: [`p-queue.queue@${depth}`] },
  ]),
}

export const depthGroup: Group = {
  name: 'queue.depth',
  contestants: (size) => [
    ...DEPTHS_OF[size].map((depth) => ours(depth)),
    ...DEPTHS_OF[size].map((depth) => ours(depth, 'ours.queue.3', true)),
  ],
  ratios: [
    { of: 'ours.queue@1000', to: ['ours.queue@10'], goal: 'P12', max: 1.5 },
    { of: 'ours.queue@10000', to: ['ours.queue@10'], goal: 'P12', max: 1.5 },
    { of: 'ours.queue.3@10000', to: ['ours.queue.3@10'] },
    { of: 'ours.queue.3@10', to: ['ours.queue@10'] },
  ],
}

/** `0` for a refusal, else 1; waits if the answer does. */
async function started(answered: Answer): Promise<number> {
  const answer = 'kind' in answered ? answered : await answered
  if (answer.kind === 'refused') return 0
  answer.release()
  return 1
}

async function total(results: readonly Promise<number>[]): Promise<number> {
  let count = 0
  for (const result of await Promise.all(results)) count += result
  return count
}

/** All waiters give up, in an order that has nothing to do with theirs. */
function cancelled(depth: number): Contestant {
  return {
    name: `queue.cancel@${depth}`,
    make() {
      const { core, bound } = single(depth, new StillClock())
      const order = scattered(depth)
      return {
        step: depth,
        async run(n) {
          let left = 0
          for (let rest = n; rest > 0; rest -= depth) {
            const running = bound.admit()
            const aborters = order.map(() => new AbortController())
            const waiting = aborters.map(({ signal }) => started(bound.admit({ signal })))
            for (const index of order) aborters[index]?.abort()
            left += depth - (await total(waiting))
            await started(running)
          }
          return left
        },
        expected: (n) => n,
        verify: () => expectActive(core, 0),
      }
    },
  }
}

/** Every other waiter gives up; those who stay start in the order in which they came, and nobody is forgotten. */
function halfCancelled(depth: number): Contestant {
  return {
    name: `queue.cancel-half@${depth}`,
    make() {
      const { core, bound } = single(depth, new StillClock())
      const turns = new Turns()
      const order = scattered(depth)
      const wait = async (index: number, signal: AbortSignal): Promise<number> => {
        const answer = await bound.admit({ signal })
        if (answer.kind === 'refused') return index % 2 === 0 ? 1 : 0
        const count = await turns.job((index - 1) / 2)
        answer.release()
        return count
      }
      return {
        step: depth,
        async run(n) {
          let count = 0
          for (let rest = n; rest > 0; rest -= depth) {
            turns.begin()
            const running = bound.admit()
            const aborters = order.map(() => new AbortController())
            const waiting = aborters.map(({ signal }, index) => wait(index, signal))
            for (const index of order) if (index % 2 === 0) aborters[index]?.abort()
            await started(running)
            count += await total(waiting)
          }
          return count
        },
        expected: (n) => n,
        verify: () => expectActive(core, 0),
      }
    },
  }
}

/** What the signals cost alone. */
function abortedSignals(depth: number): Contestant {
  return {
    name: `unit.abort@${depth}`,
    make() {
      const order = scattered(depth)
      return {
        step: depth,
        run(n) {
          let count = 0
          const onAbort = (): void => {
            count += 1
          }
          for (let rest = n; rest > 0; rest -= depth) {
            const aborters = order.map(() => new AbortController())
            for (const { signal } of aborters) signal.addEventListener('abort', onAbort, { once: true })
            for (const index of order) aborters[index]?.abort()
          }
          return count
        },
        expected: (n) => n,
      }
    },
  }
}

/** 0 to count − 1, each once, far from in order. */
function scattered(count: number): number[] {
  return Array.from({ length: count }, (_, index) => (index * 7919) % count)
}

export const cancelGroup: Group = {
  name: 'queue.cancel',
  contestants: (size) => {
    const depths = size === 'quick' ? [100] : [100, 1000, 10_000]
    return depths.flatMap((depth) => [cancelled(depth), halfCancelled(depth), abortedSignals(depth)])
  },
  ratios: [
    { of: 'queue.cancel@10000', to: ['queue.cancel@100'], goal: 'P13', max: 3 },
    { of: 'queue.cancel@100', to: ['unit.abort@100'] },
    { of: 'queue.cancel@10000', to: ['unit.abort@10000'] },
    { of: 'queue.cancel-half@10000', to: ['queue.cancel-half@100'] },
  ],
}

/** Nobody gets a permit: all leave at their deadlines, which are one instant, or one for every four of them. */
function expired(depth: number, apart: boolean): Contestant {
  return {
    name: `queue.expire.${apart ? 'apart' : 'together'}@${depth}`,
    make() {
      const { core, clock, bound } = single(depth, new ManualClock())
      return {
        step: depth,
        clock,
        exact: apart ? {} : { maxTimersPer1000: 20 },
        async run(n) {
          let left = 0
          for (let rest = n; rest > 0; rest -= depth) {
            const running = bound.admit()
            const waiting: Promise<number>[] = []
            for (let index = 0; index < depth; index += 1) {
              waiting.push(started(bound.admit()))
              if (apart && index % 4 === 0) clock.advance(1)
            }
            clock.advance(DELAY_MS)
            left += depth - (await total(waiting))
            await started(running)
          }
          return left
        },
        expected: (n) => n,
        verify: () => expectActive(core, 0),
      }
    },
  }
}

/** A limit of one grows by k, which starts exactly k; shrinks again, which starts nobody; then all have their turn. */
function resized(depth: number): Contestant {
  return {
    name: `queue.resize@${depth}`,
    make() {
      const { core, clock, bound } = single(depth, new StillClock())
      const queue = { maxQueuedCalls: depth, maxQueueDelayMs: DELAY_MS }
      const grown = Math.min(250, depth / 2) // within one batch of starts
      return {
        step: depth,
        clock,
        async run(n) {
          let count = 0
          for (let rest = n; rest > 0; rest -= depth) {
            const running = bound.admit()
            const waiting = Array.from({ length: depth }, () => bound.admit())
            await core.update({ queue, global: { concurrency: 1 + grown } })
            if (core.snapshot().active !== 1 + grown) throw new Error('A grown limit starts another number of waiters')
            await core.update({ queue, global: { concurrency: 1 } })
            if (core.snapshot().active !== 1 + grown) throw new Error('A shrunk limit starts or stops somebody')
            await started(running)
            count += await total(waiting.map(started))
          }
          return count
        },
        expected: (n) => n,
        verify: () => expectActive(core, 0),
      }
    },
  }
}

export const deadlineGroup: Group = {
  name: 'queue.expire',
  contestants: (size) => {
    const depth = size === 'quick' ? 1000 : 10_000
    return [ours(1000), expired(1000, false), expired(depth, false), expired(1000, true), resized(1000)]
  },
  ratios: [
    { of: 'queue.expire.together@1000', to: ['ours.queue@1000'] },
    { of: 'queue.expire.together@10000', to: ['queue.expire.together@1000'] },
    { of: 'queue.expire.apart@1000', to: ['ours.queue@1000'] },
    { of: 'queue.resize@1000', to: ['ours.queue@1000'] },
  ],
}
