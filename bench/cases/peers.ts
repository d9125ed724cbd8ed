import { Sema } from 'async-sema'
import { BulkheadPolicy } from 'cockatiel'
import pLimit from 'p-limit'
import PQueue from 'p-queue'
import { AdmissionCore } from '../../src/admission-core.ts'
import type { ConfigInput } from '../../src/config/types.ts'
import type { Contestant, Group } from '../engine.ts'
import { StillClock } from '../still-clock.ts'
import { immediate } from './leases.ts'
import { CONTRACT, METHOD, ONE_SCOPE, OUTSTANDING, THREE_SCOPES } from './limits.ts'

/** Work that takes no time but is a promise, as handlers are. */
const job = async (): Promise<number> => 1

/** One after the other, as promises. */
function awaited(name: string, make: () => () => Promise<number>): Contestant {
  return {
    name,
    make() {
      const execute = make()
      return {
        async run(n) {
          let count = 0
          for (let left = n; left > 0; left -= 1) count += await execute()
          return count
        },
        expected: (n) => n,
      }
    },
  }
}

function ours(config: ConfigInput): () => Promise<number> {
  const core = new AdmissionCore({ config, clock: new StillClock() })
  const bound = core.route(CONTRACT, METHOD)
  return async () => {
    const answered = bound.admit()
    const answer = 'kind' in answered ? answered : await answered
    if (answer.kind === 'refused') return 0
    try {
      return await job()
    } finally {
      answer.release()
    }
  }
}

/** A semaphore gives out no lease: what is released was counted by the caller. */
const semaphore: Contestant = {
  name: 'async-sema.tryAcquire',
  make() {
    const sema = new Sema(1000, { capacity: 1000 })
    const tokens: unknown[] = Array.from({ length: OUTSTANDING }, () => sema.tryAcquire())
    let at = 0
    return {
      run(n) {
        let count = 0
        for (let left = n; left > 0; left -= 1) {
          sema.release(tokens[at])
          const token: unknown = sema.tryAcquire()
          tokens[at] = token
          at = (at + 1) & (OUTSTANDING - 1)
          if (token !== undefined) count += 1
        }
        return count
      },
      expected: (n) => n,
    }
  },
}

const cockatiel = awaited('cockatiel.execute', () => {
  const policy = new BulkheadPolicy(100, 0)
  return () => policy.execute(job)
})

const synchronous = (scopes: 1 | 3): Contestant => ({
  name: `ours.immediate.${scopes}`,
  make: () => immediate(scopes === 1 ? ONE_SCOPE : THREE_SCOPES, {}),
})
const executed = awaited('ours.execute.3', () => ours(THREE_SCOPES))

/** One of ours beside one peer, in a process of their own. */
function pair(goal: string, of: Contestant, to: Contestant, max: number): Group {
  return {
    name: `peer.${of.name}:${to.name}`,
    contestants: () => [to, of],
    ratios: [{ of: of.name, to: [to.name], goal, max }],
  }
}

export const peerGroups: readonly Group[] = [
  pair('P9', synchronous(1), semaphore, 1.2),
  pair('P9', synchronous(3), semaphore, 1.5),
  pair('P10', executed, cockatiel, 1),
  pair('P11', synchronous(3), cockatiel, 0.2),
]

/** Those that are in no goal; apart, so that they share no heap with those that are. */
export const otherPeerGroup: Group = {
  name: 'peer.other',
  contestants: () => [
    executed,
    awaited('async-sema.acquire', () => {
      const sema = new Sema(100, { capacity: 100 })
      return async () => {
        await sema.acquire()
        try {
          return await job()
        } finally {
          sema.release()
        }
      }
    }),
    awaited('p-limit', () => {
      const limit = pLimit(100)
      return () => limit(job)
    }),
    awaited('p-queue', () => {
      const queue = new PQueue({ concurrency: 100 })
      return () => queue.add(job)
    }),
  ],
  ratios: [
    { of: 'ours.execute.3', to: ['async-sema.acquire'] },
    { of: 'ours.execute.3', to: ['p-limit'] },
    { of: 'ours.execute.3', to: ['p-queue'] },
  ],
}
