import { describe, expect, it } from 'vitest'
import { ManualClock } from '../src/manual-clock.ts'

describe('ManualClock', () => {
  it('API-5 starts at 0 and moves only when told to', () => {
    const clock = new ManualClock()
    expect([clock.nowMs(), clock.nowMs()]).toEqual([0, 0])
    clock.advance(7)
    expect(clock.nowMs()).toBe(7)
  })

  it('API-5 advances synchronously and stops at each due time, so that a callback sees its own instant', () => {
    const clock = new ManualClock()
    const seen: string[] = []
    for (const atMs of [30, 10, 20]) clock.callAt(atMs, () => seen.push(`${atMs}@${clock.nowMs()}`))
    clock.advance(100)
    expect(seen).toEqual(['10@10', '20@20', '30@30'])
    expect(clock.nowMs()).toBe(100)
  })

  it('API-3 runs callbacks of the same instant in the order of registration', () => {
    const clock = new ManualClock()
    const seen: string[] = []
    for (const name of ['first', 'second', 'third']) clock.callAt(5, () => seen.push(name))
    clock.advance(5)
    expect(seen).toEqual(['first', 'second', 'third'])
  })

  it('API-3 runs what is due exactly at the end, and nothing that is due later', () => {
    const clock = new ManualClock()
    const seen: number[] = []
    for (const atMs of [9, 10, 11]) clock.callAt(atMs, () => seen.push(atMs))
    clock.advance(10)
    expect(seen).toEqual([9, 10])
    expect(clock.pending).toBe(1)
  })

  it('API-3 runs what a callback schedules within the span, at its own instant', () => {
    const clock = new ManualClock()
    const seen: number[] = []
    const tick = (): void => {
      seen.push(clock.nowMs())
      clock.callAt(clock.nowMs() + 4, tick)
    }
    clock.callAt(4, tick)
    clock.advance(12)
    expect(seen).toEqual([4, 8, 12])
    expect(clock.pending).toBe(1)
  })

  it('never calls synchronously: an instant in the past is due at the next advance, even by nothing', () => {
    const clock = new ManualClock()
    clock.advance(50)
    const seen: number[] = []
    clock.callAt(10, () => seen.push(clock.nowMs()))
    expect(seen).toEqual([])
    clock.advance(0)
    expect(seen).toEqual([50]) // time does not go back to the instant that was missed
  })

  it('API-5 cancels by the returned function; again and too late is harmless', () => {
    const clock = new ManualClock()
    let calls = 0
    const cancel = clock.callAt(5, () => (calls += 1))
    cancel()
    cancel()
    clock.advance(5)
    expect([calls, clock.pending]).toEqual([0, 0])
    const late = clock.callAt(6, () => (calls += 1))
    clock.advance(1)
    late()
    expect(calls).toBe(1)
  })

  it('lets a callback cancel another one of the same instant', () => {
    const clock = new ManualClock()
    let calls = 0
    let cancel = (): void => undefined
    clock.callAt(5, () => cancel())
    cancel = clock.callAt(5, () => (calls += 1))
    clock.advance(5)
    expect(calls).toBe(0)
  })

  it('counts readings, timers ever started and timers still pending', () => {
    const clock = new ManualClock()
    const cancel = clock.callAt(1, () => undefined)
    clock.callAt(2, () => undefined)
    expect([clock.reads, clock.timersStarted, clock.pending]).toEqual([0, 2, 2])
    cancel()
    clock.advance(2)
    clock.nowMs()
    expect([clock.reads, clock.timersStarted, clock.pending]).toEqual([1, 2, 0])
  })

  it('sets time backwards without running anything', () => {
    const clock = new ManualClock()
    let calls = 0
    clock.advance(10)
    clock.callAt(12, () => (calls += 1))
    clock.set(3)
    expect([clock.nowMs(), calls]).toEqual([3, 0])
    clock.advance(8)
    expect(calls).toBe(0)
    clock.advance(1)
    expect(calls).toBe(1)
  })

  it.each([-1, Number.NaN])('refuses to advance by %d', (ms) => {
    const clock = new ManualClock()
    expect(() => clock.advance(ms)).toThrow(RangeError)
    expect(clock.nowMs()).toBe(0)
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY])('refuses a timer at %d, which is no instant', (atMs) => {
    expect(() => new ManualClock().callAt(atMs, () => undefined)).toThrow('not an instant')
  })
})
