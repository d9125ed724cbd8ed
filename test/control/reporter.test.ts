import { describe, expect, it } from 'vitest'
import type { ConfigInput } from '../../src/config/types.ts'
import type { PublishEvent } from '../../src/control/reporter.ts'
import { barrier, errorOf, type Setup, setup } from '../support/core.ts'

const limit = (concurrency: number): ConfigInput => ({ global: { concurrency } })

function audited(config?: ConfigInput): Setup & { events: PublishEvent[] } {
  const events: PublishEvent[] = []
  return { ...setup(config, { onPublish: (event) => void events.push(event) }), events }
}

describe('onPublish', () => {
  it('ADX-5 is told of every change: who, from what, to what, and the plan', async () => {
    const { core, events } = audited()
    core.enable(limit(1), { who: 'ann' })
    await core.update(limit(2), { who: { role: 'write', index: 0 } })
    core.drain({ who: 'bob' })
    core.resume({ who: 'bob' })
    core.disable({ who: 'cid' })
    expect(events.map(({ who }) => who)).toEqual(['ann', { role: 'write', index: 0 }, 'bob', 'bob', 'cid'])
    expect(events.map(({ from, to }) => [from, to].map((at) => `${at.state} ${at.generation} ${at.draining}`))).toEqual(
      [
        ['disabled 0 false', 'enabled 1 false'],
        ['enabled 1 false', 'enabled 2 false'],
        ['enabled 2 false', 'enabled 2 true'],
        ['enabled 2 true', 'enabled 2 false'],
        ['enabled 2 false', 'disabled 2 false'],
      ],
    )
    expect(events.map(({ plan }) => plan?.resized)).toEqual([
      [],
      [{ pointer: '/global/concurrency', scope: 'global', from: 1, to: 2 }],
      undefined,
      undefined,
      undefined,
    ])
  })

  it('ADX-5 is told of a stop once, and of nothing that changed nothing', async () => {
    const { core, events } = audited(limit(1))
    core.plan(limit(3))
    core.resume()
    await errorOf(core.update(limit(-1)))
    await errorOf(core.update(limit(2), { expectedGeneration: 9 }))
    core.drain()
    core.drain()
    await core.stop()
    await core.stop({ graceMs: 5 })
    expect(events.map(({ to }) => [to.state, to.draining])).toEqual([
      ['enabled', true],
      ['stopped', true],
    ])
  })

  it('ADX-6 a hook that throws or rejects changes nothing and fails nobody', async () => {
    for (const fail of [() => expect.unreachable(), () => Promise.reject(new Error('audit log is full'))]) {
      const { core, hold } = setup(undefined, { onPublish: fail })
      core.enable(limit(1))
      expect(await core.update(limit(2))).toMatchObject({ generation: 2 })
      core.drain()
      core.resume()
      const running = hold()
      core.disable()
      const stopped = core.stop()
      running.release()
      expect((await stopped).drained).toBe(true)
    }
  })

  it('ADX-6 a hook that writes itself is one writer more, after the change', async () => {
    const seen: number[] = []
    const { core } = setup(limit(1), {
      onPublish: ({ to }) => {
        seen.push(to.generation)
        if (to.generation === 2) void core.update(limit(3))
      },
    })
    expect(await core.update(limit(2))).toMatchObject({ generation: 2 })
    expect([core.generation, seen]).toEqual([3, [2, 3]])
  })

  it('ADX-5 of two racing writers only the one who won is reported', async () => {
    const { core, events } = audited(limit(1))
    const gate = barrier<ConfigInput>()
    const losing = errorOf(core.update(() => gate.promise, { who: 'loser' }))
    await core.update(limit(2), { who: 'winner' })
    gate.resolve(limit(3))
    await losing
    expect(events.map(({ who }) => who)).toEqual(['winner'])
  })
})

describe('watch', () => {
  it('ADX-5 tells each hook after onPublish, until it is taken back; one may be given twice', async () => {
    const told: string[] = []
    const { core } = setup(limit(1), { onPublish: () => void told.push('first') })
    const hook = ({ to }: PublishEvent): void => void told.push(`${to.generation}`)
    const ends = [core.watch(hook), core.watch(hook)]
    await core.update(limit(2))
    ends[0]?.()
    ends[0]?.()
    await core.update(limit(3))
    ends[1]?.()
    await core.update(limit(4))
    expect(told).toEqual(['first', '2', '2', 'first', '3', 'first'])
  })

  it('ADX-6 a hook that throws or rejects keeps no other from hearing', async () => {
    const { core } = setup(limit(1))
    const told: number[] = []
    core.watch(() => expect.unreachable())
    core.watch(() => Promise.reject(new Error('no')))
    core.watch(({ to }) => void told.push(to.generation))
    await core.update(limit(2))
    expect(told).toEqual([2])
  })

  it('ADX-5 a hook that another one takes back hears no more', () => {
    const { core } = setup(limit(1))
    const told: string[] = []
    const ends: (() => void)[] = []
    core.watch(() => ends[0]?.())
    ends.push(core.watch(() => void told.push('second')))
    core.drain()
    expect(told).toEqual([])
  })

  it('ADX-5 every hook hears of changes in their order, also of those that a hook makes', () => {
    const { core } = setup(limit(1))
    const told: string[] = []
    core.watch(({ to }) => {
      if (to.draining) core.resume()
    })
    core.watch(({ from, to }) => void told.push(`${from.draining} ${to.draining}`))
    core.drain()
    core.drain()
    expect(told).toEqual(['false true', 'true false', 'false true', 'true false'])
  })
})
