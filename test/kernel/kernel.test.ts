import { describe, expect, it } from 'vitest'
import type { PartitionConfig, RateConfig } from '../../src/config/types.ts'
import { Kernel, type ScopeIds, Staging, scopeId } from '../../src/kernel/kernel.ts'

const rate: RateConfig = { algorithm: 'fixed-window', permitLimit: 2, windowMs: 100 }
const partition: PartitionConfig = { maxPartitions: 5, idleTimeoutMs: 50, onPartitionLimit: 'evict', concurrency: 1 }

/** Commits what `stage` stages; `removed` names the scopes whose concurrency is no longer named. */
function commit(kernel: Kernel, stage: (staging: Staging) => void, removed: readonly ScopeIds[] = []): void {
  const staging = new Staging(kernel)
  stage(staging)
  kernel.commit(staging, { concurrencies: removed, deliveries: [] })
}

describe('Kernel', () => {
  it('STA-1 concurrency is keyed by scope alone, never by its number', () => {
    const kernel = new Kernel()
    commit(kernel, (staging) => staging.concurrency('/a', undefined, 1))
    const state = kernel.concurrency('/a', undefined)
    commit(kernel, (staging) => expect(staging.concurrency('/a', undefined, 7)).toBe(state))
    expect([state?.limit, kernel.size]).toEqual([7, 1])
  })

  it('STA-1 rates are keyed by scope and definition', () => {
    const kernel = new Kernel()
    commit(kernel, (staging) => {
      const state = staging.rate('/a', undefined, rate)
      expect(staging.rate('/b', undefined, rate)).not.toBe(state)
      expect(staging.rate('/a', undefined, { ...rate, windowMs: 101 })).not.toBe(state)
    })
    expect(kernel.size).toBe(3)
    const [first] = kernel.rates()
    const staging = new Staging(kernel)
    expect(staging.rate('/a', undefined, { ...rate })).toBe(first)
    expect(staging.rates).toEqual([])
  })

  it('STA-1 pools are keyed by scope, selector and definition', () => {
    const kernel = new Kernel()
    commit(kernel, (staging) => {
      staging.pool('/a', undefined, 'tenant', partition)
      staging.pool('/a', undefined, 'region', partition)
      staging.pool('/a', 'get', 'tenant', partition)
      staging.pool('/a', undefined, 'tenant', { ...partition, concurrency: 2 })
    })
    expect(kernel.size).toBe(4)
  })

  it('STA-1 ids that look alike when joined do not collide', () => {
    const ids = [
      scopeId(undefined, undefined),
      scopeId('global', undefined),
      scopeId('/a', 'b c'),
      scopeId('/a b', 'c'),
      scopeId('/a b c', undefined),
      scopeId('', ''),
      scopeId('', undefined),
      scopeId('1:a', 'b'),
      scopeId('1', ':ab'),
    ]
    expect(new Set(ids).size).toBe(ids.length)
    const kernel = new Kernel()
    commit(kernel, (staging) => {
      staging.pool('1', undefined, 'x', partition)
      staging.pool(undefined, undefined, 'xcontract:1', partition)
    })
    expect(kernel.size).toBe(2)
  })

  it('PUB-5 a staging that is dropped leaves no trace, also of a limit', () => {
    const kernel = new Kernel()
    commit(kernel, (staging) => staging.concurrency(undefined, undefined, 3))
    const staging = new Staging(kernel)
    staging.concurrency(undefined, undefined, 9)
    staging.concurrency('/a', undefined, 1)
    staging.rate('/a', undefined, rate)
    staging.pool('/a', undefined, 'tenant', partition)
    expect([kernel.size, kernel.concurrency(undefined, undefined)?.limit]).toEqual([1, 3])
  })

  it('STA-3 an unnamed concurrency goes when nobody holds or awaits a permit of it, not before', () => {
    const kernel = new Kernel()
    commit(kernel, (staging) => staging.concurrency('/a', undefined, 1))
    const state = kernel.concurrency('/a', undefined)
    if (state === undefined) return expect.unreachable()
    state.take()
    state.waiting = 1
    commit(kernel, () => undefined, [{ contract: '/a', method: undefined }])
    for (const step of [() => state.release(), () => (state.waiting = 0)]) {
      kernel.purge(0)
      expect(kernel.size).toBe(1)
      step()
    }
    kernel.purge(0)
    expect([kernel.size, kernel.hasUnnamed]).toEqual([0, false])
  })

  it('STA-3 one that nobody uses goes at once', () => {
    const kernel = new Kernel()
    commit(kernel, (staging) => [staging.concurrency('/a', undefined, 1), staging.concurrency('/a', 'get', 1)])
    commit(kernel, () => undefined, [{ contract: '/a', method: 'get' }])
    expect([kernel.size, kernel.hasUnnamed]).toEqual([1, false])
    kernel.unnameAll()
    expect([kernel.size, kernel.hasUnnamed]).toEqual([0, false])
  })

  it('STA-3 named again before that, it is the same and stays', () => {
    const kernel = new Kernel()
    commit(kernel, (staging) => staging.concurrency('/a', undefined, 1))
    const state = kernel.concurrency('/a', undefined)
    state?.take()
    commit(kernel, () => undefined, [{ contract: '/a', method: undefined }])
    commit(kernel, (staging) => expect(staging.concurrency('/a', undefined, 1)).toBe(state))
    state?.release()
    kernel.purge(1_000_000)
    expect([kernel.size, kernel.concurrency('/a', undefined) === state, kernel.hasUnnamed]).toEqual([1, true, false])
  })

  it('RAT-4 an unnamed rate is kept until a new one would behave the same', () => {
    const kernel = new Kernel()
    commit(kernel, (staging) => {
      staging.rate(undefined, undefined, rate).take(40)
    })
    kernel.unnameAll()
    kernel.purge(139)
    expect(kernel.size).toBe(1)
    kernel.purge(140)
    expect(kernel.size).toBe(0)
  })

  it('STA-4 an unnamed pool is kept while an entry of it is busy, without its idle entries', () => {
    const kernel = new Kernel()
    commit(kernel, (staging) => staging.pool(undefined, undefined, 'tenant', partition))
    const [pool] = kernel.pools()
    if (pool === undefined) return expect.unreachable()
    const [busy, idle] = [pool.find('busy', 0), pool.find('idle', 0)]
    pool.enter(busy, 0)
    pool.enter(idle, 0)
    pool.leave(idle)
    kernel.unnameAll()
    kernel.purge(0)
    expect([kernel.size, pool.size]).toEqual([1, 1])
    pool.leave(busy)
    kernel.purge(0)
    expect([kernel.size, pool.size]).toEqual([0, 0])
  })

  it('PUB-7 ten thousand named and unnamed states leave none behind', () => {
    const kernel = new Kernel()
    for (let update = 0; update < 10_000; update += 1) {
      const name = `/${update % 100}`
      commit(kernel, (staging) => {
        staging.concurrency(name, undefined, 1)
        staging.rate(name, 'get', rate)
        staging.pool(name, 'get', 'tenant', partition)
      })
      kernel.unnameAll()
      kernel.purge(update)
    }
    expect([kernel.size, kernel.hasUnnamed]).toEqual([0, false])
  })
})
