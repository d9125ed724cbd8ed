import { describe, expect, it } from 'vitest'
import { Concurrency, UNLIMITED } from '../../src/kernel/concurrency.ts'
import { Scope } from '../../src/kernel/scope.ts'

const permits = (limit: number): Concurrency => new Concurrency(new Scope(), limit)

describe('Concurrency', () => {
  it('CON-4 has room for as many as its limit, and for no more', () => {
    const state = permits(2)
    state.take()
    expect(state.hasRoom).toBe(true)
    state.take()
    expect(state.hasRoom).toBe(false)
    expect(() => state.take()).toThrow('without room')
    expect(state.active).toBe(2)
  })

  it('CON-4 never counts below zero', () => {
    const state = permits(2)
    expect(() => state.release()).toThrow('nobody holds')
    state.take()
    state.release()
    expect(() => state.release()).toThrow('nobody holds')
    expect(state.active).toBe(0)
  })

  it('CON-1 has room at once when its limit grows', () => {
    const state = permits(1)
    state.take()
    state.limit = 3
    state.take()
    state.take()
    expect([state.active, state.hasRoom]).toEqual([3, false])
  })

  it('CON-2 has no room after a shrink until fewer are active than the new limit', () => {
    const state = permits(3)
    for (let taken = 0; taken < 3; taken += 1) state.take()
    state.limit = 1
    const rooms = [1, 2, 3].map(() => {
      state.release()
      return state.hasRoom
    })
    expect(rooms).toEqual([false, false, true])
  })

  it('is closed with limit 0', () => {
    expect(permits(0).hasRoom).toBe(false)
    expect(permits(0).msUntilRoom(0, 0)).toBe(Number.POSITIVE_INFINITY)
  })

  it('ADM-4 leaves as many permits as are due to others', () => {
    const state = permits(3)
    state.take()
    expect([0, 1, 2, 3].map((ahead) => state.msUntilRoom(0, ahead))).toEqual([0, 0, Infinity, Infinity])
  })

  it('stands in for "absent" with a limit that no count reaches', () => {
    expect(permits(UNLIMITED).msUntilRoom(0, 1_000_000)).toBe(0)
  })
})
