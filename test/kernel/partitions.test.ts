import { describe, expect, it } from 'vitest'
import type { PartitionConfig, RateConfig } from '../../src/config/types.ts'
import { type Partition, PartitionPool } from '../../src/kernel/partitions.ts'
import { Scope } from '../../src/kernel/scope.ts'
import { randomFrom } from '../support/random.ts'

const rate: RateConfig = { algorithm: 'fixed-window', permitLimit: 1, windowMs: 100 }
const poolOf = (config: Partial<PartitionConfig> = {}): PartitionPool => {
  const defaults = { maxPartitions: 3, idleTimeoutMs: 1000, onPartitionLimit: 'evict', concurrency: 1 } as const
  return new PartitionPool(new Scope(undefined, undefined, 'tenant'), 'tenant', { ...defaults, ...config })
}

/** One call in the entry of a key, from now until it leaves; takes a rate permit if the entry has a rate. */
function enter(pool: PartitionPool, id: string, nowMs: number): Partition {
  const partition = pool.find(id, nowMs)
  expect(pool.canHold(partition, nowMs)).toBe(true)
  pool.enter(partition, nowMs)
  partition.rate?.take(nowMs)
  return partition
}
const use = (pool: PartitionPool, id: string, nowMs: number): void => pool.leave(enter(pool, id, nowMs))
const idsOf = (pool: PartitionPool): string[] => Array.from(pool.values(), ({ id }) => id).sort()

describe('PartitionPool', () => {
  it('PAR-4 asking for a key creates and evicts nothing', () => {
    const pool = poolOf({ maxPartitions: 1 })
    use(pool, 'a', 0)
    const asked = pool.find('b', 1)
    expect(pool.canHold(asked, 1)).toBe(true)
    expect(idsOf(pool)).toEqual(['a'])
    expect(pool.find('b', 1)).not.toBe(asked)
    expect(pool.find('a', 1)).toBe(pool.find('a', 2))
  })

  it('PAR-1 a key is forgotten idleTimeoutMs after its last use, not a millisecond earlier', () => {
    const pool = poolOf()
    use(pool, 'a', 0)
    use(pool, 'a', 500)
    pool.sweep(1499, 100)
    expect(pool.size).toBe(1)
    pool.sweep(1500, 100)
    expect(pool.size).toBe(0)
  })

  it('PAR-1 a busy key stays, however old, and is forgotten after it fell idle', () => {
    const pool = poolOf()
    const partition = enter(pool, 'a', 0)
    pool.sweep(1_000_000, 100)
    expect(pool.find('a', 0)).toBe(partition)
    pool.leave(partition)
    pool.sweep(1_000_000, 100)
    expect(pool.size).toBe(0)
  })

  it('PAR-1 a key in debt stays until the debt is gone and the idle time is over', () => {
    const pool = poolOf({ rate, idleTimeoutMs: 10 })
    use(pool, 'a', 0) // in debt until 100
    pool.sweep(109, 100)
    expect(pool.size).toBe(1)
    pool.sweep(110, 100)
    expect(pool.size).toBe(0)
  })

  it('PAR-2 the key that has been idle longest makes room, also after others were used again', () => {
    const pool = poolOf()
    for (const [id, nowMs] of [
      ['a', 0],
      ['b', 1],
      ['c', 2],
      ['a', 3],
    ] as const) {
      use(pool, id, nowMs)
    }
    use(pool, 'd', 4)
    expect(idsOf(pool)).toEqual(['a', 'c', 'd'])
    use(pool, 'e', 5)
    expect(idsOf(pool)).toEqual(['a', 'd', 'e'])
  })

  it('PAR-2 only busy keys can keep a new one out', () => {
    const pool = poolOf({ maxPartitions: 2 })
    const [a, b] = [enter(pool, 'a', 0), enter(pool, 'b', 0)]
    const fresh = pool.find('c', 1)
    expect(pool.canHold(fresh, 1)).toBe(false)
    expect(pool.canHold(a, 1)).toBe(true)
    pool.leave(b)
    expect(pool.canHold(fresh, 1)).toBe(true)
    pool.enter(fresh, 1)
    expect(idsOf(pool)).toEqual(['a', 'c'])
  })

  it('PAR-4 a key without debt makes room before one with debt, whatever their age', () => {
    const pool = poolOf({ rate, maxPartitions: 2 })
    use(pool, 'free', 0)
    use(pool, 'indebted', 99)
    use(pool, 'new', 100) // the debt of 'free' is over now
    expect(idsOf(pool)).toEqual(['indebted', 'new'])
  })

  it('PAR-4 among keys in debt the one with the least of it makes room, or none with refuse', () => {
    for (const onPartitionLimit of ['evict', 'refuse'] as const) {
      const pool = poolOf({ rate, maxPartitions: 2, onPartitionLimit })
      use(pool, 'more', 50)
      use(pool, 'less', 20)
      const fresh = pool.find('new', 60)
      expect(pool.canHold(fresh, 60)).toBe(onPartitionLimit === 'evict')
      if (onPartitionLimit === 'evict') pool.enter(fresh, 60)
      expect(idsOf(pool)).toEqual(onPartitionLimit === 'evict' ? ['more', 'new'] : ['less', 'more'])
    }
  })

  it('RAT-4 shedding forgets every entry that a new one would behave like, and no other', () => {
    const pool = poolOf({ rate })
    use(pool, 'free', 0)
    use(pool, 'indebted', 60)
    const busy = enter(pool, 'busy', 0)
    pool.shed(100)
    expect(idsOf(pool)).toEqual(['busy', 'indebted'])
    pool.leave(busy)
    pool.shed(160)
    expect(pool.size).toBe(0)
  })

  it('PAR-1 an entry is not left more often than it was entered', () => {
    const pool = poolOf()
    const partition = enter(pool, 'a', 0)
    pool.leave(partition)
    expect(() => pool.leave(partition)).toThrow('nobody is in')
  })

  it.each([1, 2, 3])('PAR-2 random use agrees with a model of the rules (seed %i)', (seed) => {
    const random = randomFrom(seed)
    const pool = poolOf({ rate, maxPartitions: 8, idleTimeoutMs: 300 })
    const model = new Map<string, { users: number; usedAtMs: number; debtUntilMs: number }>()
    const entered: Partition[] = []
    let nowMs = 0
    for (let step = 0; step < 5000; step += 1) {
      nowMs += random(12)
      if (entered.length > 0 && random(3) === 0) {
        const [partition] = entered.splice(random(entered.length), 1)
        if (partition === undefined) continue
        pool.leave(partition)
        const entry = model.get(partition.id)
        if (entry !== undefined) entry.users -= 1
        continue
      }
      const id = `k${random(16)}`
      const partition = pool.find(id, nowMs)
      const known = model.get(id)
      const freeAt = (entry: { usedAtMs: number; debtUntilMs: number }): number =>
        Math.max(entry.usedAtMs, entry.debtUntilMs)
      const idle = [...model].filter(([, entry]) => entry.users === 0)
      const expired = idle.filter(([, entry]) => freeAt(entry) <= nowMs - 300)
      const canHold = known !== undefined || model.size < 8 || idle.length > 0
      expect(pool.canHold(partition, nowMs), `step ${step}, seed ${seed}`).toBe(canHold)
      if (!canHold || (partition.rate?.msUntilRoom(nowMs, 0) ?? 0) > 0) continue
      pool.enter(partition, nowMs)
      partition.rate?.take(nowMs)
      entered.push(partition)
      if (known === undefined) {
        for (const [key] of expired) model.delete(key)
        if (model.size >= 8) {
          const left = idle.filter(([key]) => model.has(key))
          const least = Math.min(...left.map(([, entry]) => freeAt(entry)))
          const gone = left.filter(([key]) => ![...pool.values()].some((kept) => kept.id === key))
          expect(
            gone.map(([, entry]) => freeAt(entry)),
            `step ${step}, seed ${seed}`,
          ).toEqual([least])
          for (const [key] of gone) model.delete(key)
        }
      }
      const entry = known ?? { users: 0, usedAtMs: 0, debtUntilMs: 0 }
      model.set(id, { users: entry.users + 1, usedAtMs: nowMs, debtUntilMs: partition.freeAtMs })
      expect(idsOf(pool), `step ${step}, seed ${seed}`).toEqual([...model.keys()].sort())
    }
  })
})
