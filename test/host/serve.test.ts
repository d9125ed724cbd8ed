import { describe, expect, it } from 'vitest'
import { attend, completeOptions, type Host, type ServeHandle, type ServeOptions } from '../../src/host/serve.ts'
import { type Setup, setup } from '../support/core.ts'
import { FakeAnnouncer, FakePlatform } from './support.ts'

interface Attended extends Setup {
  readonly handle: ServeHandle<string>
  readonly platform: FakePlatform
  readonly exits: readonly number[]
  /** Signals that are listened to now. */
  readonly heard: ReadonlyMap<string, () => void>
  send(signal: string): void
}

function attended(options: ServeOptions = {}, before: (core: Setup['core']) => void = () => {}): Attended {
  const basis = setup({ global: { concurrency: 1 } })
  before(basis.core)
  const platform = new FakePlatform()
  const exits: number[] = []
  const heard = new Map<string, () => void>()
  const host: Host<string> = {
    server: 'the server',
    hostname: '127.0.0.1',
    port: 1234,
    platform,
    onSignal(signal, fn) {
      heard.set(signal, fn)
      return () => heard.delete(signal)
    },
    exit: (code) => exits.push(code),
  }
  const handle = attend(host, { core: basis.core }, completeOptions({ ...options, clock: basis.clock }))
  return { ...basis, handle, platform, exits, heard, send: (signal) => heard.get(signal)?.() }
}

describe('signals', () => {
  it('DRN-5 the first begins the end, and the process exits with 0 after a clean one', async () => {
    const { clock, flush, handle, platform, exits, heard, send } = attended()
    expect([...heard.keys()]).toEqual(['SIGTERM', 'SIGINT'])
    send('SIGTERM')
    expect(handle.phase).toBe('announcing')
    clock.advance(3000)
    await flush()
    platform.stopping.resolve()
    expect((await handle.stopped).reason).toBe('SIGTERM')
    expect(exits).toEqual([]) // whoever awaits `stopped` comes first
    await flush()
    clock.advance(0)
    expect(exits).toEqual([0])
    expect(heard.size).toBe(0)
  })

  it('DRN-5 the second forces, and the process exits with 1', async () => {
    const { clock, flush, handle, exits, hold, send } = attended()
    hold()
    send('SIGTERM')
    clock.advance(100)
    send('SIGTERM')
    expect((await handle.stopped).outcome).toBe('forced')
    await flush()
    clock.advance(0)
    expect(exits).toEqual([1])
  })

  it('DRN-5 a second one of another kind forces at once', async () => {
    const { handle, send } = attended()
    send('SIGTERM')
    send('SIGINT')
    expect((await handle.stopped).outcome).toBe('forced')
  })

  it('DRN-5 the echo of a key press, from the terminal and from npm, is one signal', () => {
    const { clock, handle, send } = attended()
    send('SIGINT')
    clock.advance(99)
    send('SIGINT')
    expect(handle.phase).toBe('announcing')
    clock.advance(1)
    send('SIGINT')
    expect(handle.phase).toBe('stopped')
  })

  it('DRN-5 a cut ends the process with 1', async () => {
    const { clock, flush, handle, exits, hold, send } = attended({ announceMs: 1, finishMs: 1, closeMs: 1 })
    hold()
    send('SIGINT')
    clock.advance(3)
    expect((await handle.stopped).outcome).toBe('cut')
    await flush()
    clock.advance(0)
    expect(exits).toEqual([1])
  })

  it('DRN-5 `exit: false` leaves the process alone and the signals to others', async () => {
    const { clock, flush, handle, platform, exits, heard, send } = attended({ exit: false, announceMs: 0 })
    send('SIGTERM')
    await flush()
    platform.stopping.resolve()
    await handle.stopped
    await flush()
    clock.advance(1000)
    expect(exits).toEqual([])
    expect(heard.size).toBe(0)
  })

  it('DRN-5 the program chooses which, none included', () => {
    expect([...attended({ signals: ['SIGHUP'] }).heard.keys()]).toEqual(['SIGHUP'])
    expect(attended({ signals: [] }).heard.size).toBe(0)
  })
})

describe('shutdown()', () => {
  it('DRN-5 ends the server and never the process', async () => {
    const { clock, flush, handle, platform, exits, heard } = attended({ announceMs: 0 })
    const report = handle.shutdown()
    await flush()
    platform.stopping.resolve()
    expect(await report).toMatchObject({ reason: 'shutdown', outcome: 'drained' })
    expect(await handle.stopped).toBe(await report)
    await flush()
    clock.advance(1000)
    expect([exits, heard.size, handle.phase]).toEqual([[], 0, 'stopped'])
  })

  it('DRN-5 DRN-7 is joined by a signal, which then ends the process; the next one forces', async () => {
    const { clock, flush, handle, exits, hold, send } = attended()
    hold()
    void handle.shutdown()
    clock.advance(1000)
    send('SIGTERM')
    expect(handle.phase).toBe('announcing')
    clock.advance(1000)
    send('SIGTERM')
    expect(await handle.stopped).toMatchObject({ reason: 'shutdown', outcome: 'forced', totalMs: 2000 })
    await flush()
    clock.advance(0)
    expect(exits).toEqual([1])
  })

  it('DRN-5 takes windows of its own', async () => {
    const { clock, handle, hold } = attended()
    hold()
    void handle.shutdown({ announceMs: 10, finishMs: 10, closeMs: 10 })
    clock.advance(30)
    expect(await handle.stopped).toMatchObject({ outcome: 'cut', totalMs: 30 })
  })
})

describe('the announcer', () => {
  it('GWY-7 is started once the server listens', () => {
    const announcer = new FakeAnnouncer()
    attended({ announcer })
    expect(announcer.told).toEqual(['start'])
  })

  it.each([
    ['throws', () => expect.unreachable('no gateway')],
    ['rejects', () => Promise.reject(new Error('no gateway'))],
    ['never answers', () => new Promise(() => undefined)],
  ])('GWY-7 does not keep the instance from serving when it %s', async (_, start) => {
    const { flush, handle } = attended({ announcer: { start, draining: () => undefined, offline: () => undefined } })
    await flush()
    expect(handle.phase).toBe('serving')
  })
})

describe('a drain by hand', () => {
  it('GWY-7 ADX-5 gateways hear of each drain and of each return', async () => {
    const announcer = new FakeAnnouncer()
    const { core, clock } = attended({ announcer })
    core.drain({ announceMs: 100 })
    clock.advance(100)
    core.drain()
    await core.update({ global: { concurrency: 2 } })
    expect(announcer.told).toEqual(['start', 'draining: operator'])
    core.resume()
    core.resume()
    core.drain()
    expect(announcer.told).toEqual(['start', 'draining: operator', 'start', 'draining: operator'])
  })

  it('GWY-7 they hear of one that began before the server listened', () => {
    const announcer = new FakeAnnouncer()
    attended({ announcer }, (core) => core.drain())
    expect(announcer.told).toEqual(['start', 'draining: operator'])
  })

  it('GWY-7 they hear of a stop, too', () => {
    const announcer = new FakeAnnouncer()
    const { core } = attended({ announcer })
    void core.stop()
    expect(announcer.told).toEqual(['start', 'draining: operator'])
  })

  it('GWY-7 what comes with a signal they hear once, and what comes after the end not at all', async () => {
    const announcer = new FakeAnnouncer()
    const { core, flush, handle, send } = attended({ announcer })
    send('SIGTERM')
    core.drain()
    core.resume()
    send('SIGINT')
    await handle.stopped
    await flush()
    expect(announcer.told).toEqual(['start', 'draining: SIGTERM', 'offline'])
  })

  it('GWY-7 an announcer that fails fails no drain', async () => {
    const fail = (): Promise<void> => Promise.reject(new Error('no gateway'))
    const { core, flush } = attended({ announcer: { start: fail, draining: fail, offline: fail } })
    core.drain()
    await flush()
    expect(core.draining).toBe(true)
  })
})

describe('options', () => {
  it('DRN-5 windows are checked before anything listens', () => {
    expect(() => completeOptions({ announceMs: -1 })).toThrow(/announceMs -1/)
    expect(completeOptions({}).port).toBe(3000)
    expect(completeOptions({ port: 0 }).port).toBe(0)
  })

  it('RUN-1 listening to signals starts no timer and reads no clock', () => {
    const { clock } = attended()
    expect([clock.reads, clock.pending]).toEqual([0, 0])
  })
})
