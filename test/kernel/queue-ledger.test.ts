import { describe, expect, it } from 'vitest'
import { QueueLedger } from '../../src/kernel/queue-ledger.ts'

describe('QueueLedger', () => {
  it('QUE-1 counts one call and its bytes for each reservation, and returns to zero', () => {
    const ledger = new QueueLedger()
    for (const bytes of [10, 0, 5]) ledger.reserve(bytes)
    expect([ledger.calls, ledger.bytes]).toEqual([3, 15])
    for (const bytes of [5, 10, 0]) ledger.unreserve(bytes)
    expect([ledger.calls, ledger.bytes]).toEqual([0, 0])
  })

  it.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])('refuses to reserve %d bytes', (bytes) => {
    const ledger = new QueueLedger()
    expect(() => ledger.reserve(bytes)).toThrow('are not a count')
    expect([ledger.calls, ledger.bytes]).toEqual([0, 0])
  })

  it('QUE-1 does not take back what nobody reserved', () => {
    const ledger = new QueueLedger()
    expect(() => ledger.unreserve(0)).toThrow('nobody has')
    ledger.reserve(3)
    expect(() => ledger.unreserve(4)).toThrow('nobody has')
    expect([ledger.calls, ledger.bytes]).toEqual([1, 3])
  })

  it('QUE-1 notices bytes that outlast the last waiter', () => {
    const ledger = new QueueLedger()
    ledger.reserve(3)
    expect(() => ledger.unreserve(2)).toThrow('without a waiter')
  })
})
