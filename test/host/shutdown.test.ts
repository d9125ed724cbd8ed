import { describe, expect, it } from 'vitest'
import { completeWindows, DEFAULT_WINDOWS } from '../../src/host/windows.ts'
import { expectQuiet, reasonOf } from '../support/core.ts'
import { FakeAnnouncer, wayOut } from './support.ts'

const oneAtATime = { global: { concurrency: 1 }, queue: { maxQueuedCalls: 10, maxQueueDelayMs: 60_000 } }

describe('the way out', () => {
  it('DRN-5 announces, seals, waits until nothing runs and nothing waits, and only then stops the platform', async () => {
    const { core, clock, hold, flush, shutdown, platform, phases } = wayOut(oneAtATime)
    const [running, waiting] = [hold(), hold()]
    void shutdown.begin('SIGTERM')
    expect([shutdown.phase, core.ready, hold().waiting]).toEqual(['announcing', false, true])
    clock.advance(2999)
    expect(shutdown.phase).toBe('announcing')
    clock.advance(1)
    expect([shutdown.phase, reasonOf(core)]).toEqual(['finishing', 'draining'])
    running.release()
    await flush()
    expect(waiting.started).toBe(true)
    waiting.release()
    await flush()
    expect([shutdown.phase, core.snapshot().active]).toEqual(['finishing', 1]) // the one that came while announcing
    expect(platform.told).toEqual([])
    expect(phases).toEqual(['announcing', 'finishing'])
  })

  it('DRN-5 reports what finished, with the time of each phase', async () => {
    const { core, clock, hold, flush, shutdown, platform, phases, reports } = wayOut(oneAtATime)
    const [running, waiting] = [hold(), hold()]
    void shutdown.begin('SIGTERM')
    clock.advance(3000)
    reasonOf(core)
    clock.advance(700)
    running.release()
    await flush()
    clock.advance(200)
    waiting.release()
    await flush()
    expect([shutdown.phase, platform.told, core.state]).toEqual(['closing', ['stop'], 'stopped'])
    clock.advance(60)
    platform.stopping.resolve()
    await expect(shutdown.stopped).resolves.toEqual({
      reason: 'SIGTERM',
      outcome: 'drained',
      exitCode: 0,
      atSignal: { active: 1, queued: 1 },
      atSeal: { active: 1, queued: 1 },
      finished: 2,
      refused: 1,
      cut: { active: 0, queued: 0, sockets: 0 },
      phases: { announcingMs: 3000, finishingMs: 900, closingMs: 60 },
      totalMs: 3960,
      errors: [],
    })
    expect(phases).toEqual(['announcing', 'finishing', 'closing', 'stopped'])
    expect(reports).toHaveLength(1)
    clock.advance(0)
    expectQuiet({ core, clock })
  })

  it('DRN-5 with nothing to do it takes no longer than the announcement', async () => {
    const { core, clock, flush, shutdown, platform } = wayOut()
    void shutdown.begin('SIGTERM')
    clock.advance(3000)
    await flush()
    expect(platform.told).toEqual(['stop'])
    platform.stopping.resolve()
    expect((await shutdown.stopped).totalMs).toBe(3000)
    clock.advance(0)
    expectQuiet({ core, clock })
  })

  it('DRN-5 without announcement and with nothing to do it stops the platform without a timer', async () => {
    const { core, clock, flush, shutdown, platform, phases } = wayOut()
    void shutdown.begin('shutdown', { announceMs: 0 })
    await flush()
    expect(platform.told).toEqual(['stop'])
    expect(phases).toEqual(['announcing', 'finishing', 'closing'])
    platform.stopping.resolve()
    expect((await shutdown.stopped).outcome).toBe('drained')
    clock.advance(0)
    expectQuiet({ core, clock })
  })

  it('DRN-2 DRN-5 waits for calls while admission is disabled', async () => {
    const { core, clock, flush, shutdown, platform } = wayOut()
    core.disable()
    const lease = core.track()
    void shutdown.begin('SIGTERM', { announceMs: 0 })
    clock.advance(4000)
    await flush()
    expect(platform.told).toEqual([])
    lease.release()
    await flush()
    expect(platform.told).toEqual(['stop'])
  })
})

describe('a busy event loop', () => {
  it('DRN-5 what arrived before the seal is admitted, though it is read after the timer has fired', () => {
    const { core, clock, shutdown } = wayOut({ global: { concurrency: 10 } })
    const read: (string | undefined)[] = []
    void shutdown.begin('SIGTERM')
    // The turn in which the timer fires, and the next one.
    clock.callAt(3000, () => {
      read.push(reasonOf(core))
      clock.callAt(3000, () => read.push(reasonOf(core)))
    })
    clock.advance(3000)
    expect(read).toEqual([undefined, undefined])
    expect([shutdown.phase, reasonOf(core)]).toEqual(['finishing', 'draining'])
  })

  it('DRN-5 no turn is given when nothing was announced', () => {
    const { core, shutdown } = wayOut()
    void shutdown.begin('SIGTERM', { announceMs: 0 })
    expect([shutdown.phase, reasonOf(core)]).toEqual(['finishing', 'draining'])
  })
})

describe('the deadline', () => {
  it('DRN-5 at the end of finishing refuses what still waits, and lets what runs go on while the server closes', async () => {
    const { core, clock, hold, flush, shutdown, platform } = wayOut(oneAtATime)
    const [running, waiting] = [hold(), hold()]
    void shutdown.begin('SIGTERM')
    clock.advance(8000)
    await flush()
    expect([shutdown.phase, waiting.refusal?.reason, core.state]).toEqual(['closing', 'stopped', 'stopped'])
    expect(platform.told).toEqual([]) // something runs: the platform's own stop would come too early
    clock.advance(999)
    running.release()
    await flush()
    expect(platform.told).toEqual(['stop'])
    platform.stopping.resolve()
    expect(await shutdown.stopped).toMatchObject({
      outcome: 'cut',
      exitCode: 1,
      finished: 1,
      refused: 0,
      cut: { active: 0, queued: 1, sockets: 0 },
      phases: { announcingMs: 3000, finishingMs: 5000, closingMs: 999 },
    })
  })

  it('DRN-5 cuts a call that hangs, and the report says so', async () => {
    const { core, clock, hold, shutdown, platform } = wayOut(oneAtATime)
    const hanging = hold()
    platform.sockets = 1
    void shutdown.begin('SIGTERM')
    clock.advance(8999)
    expect(platform.told).toEqual([])
    clock.advance(1)
    expect(platform.told).toEqual(['cut'])
    expect(await shutdown.stopped).toMatchObject({
      outcome: 'cut',
      exitCode: 1,
      atSeal: { active: 1, queued: 0 },
      finished: 0,
      cut: { active: 1, queued: 0, sockets: 1 },
      totalMs: 9000,
    })
    hanging.release()
    clock.advance(0)
    expectQuiet({ core, clock })
  })

  it('DRN-5 gives the time that finishing did not need to the streams that are still open, and cuts them at the same instant', async () => {
    const { clock, flush, shutdown, platform } = wayOut()
    platform.sockets = 2
    void shutdown.begin('SIGTERM')
    clock.advance(3000)
    await flush()
    expect(platform.told).toEqual(['stop'])
    clock.advance(5999)
    expect(shutdown.phase).toBe('closing')
    clock.advance(1)
    expect(platform.told).toEqual(['stop', 'cut'])
    expect(await shutdown.stopped).toMatchObject({ outcome: 'cut', cut: { active: 0, queued: 0, sockets: 2 } })
  })

  it('DRN-5 is not lost work when only sockets without a request were left', async () => {
    const { clock, flush, shutdown } = wayOut()
    void shutdown.begin('SIGTERM')
    clock.advance(3000)
    await flush()
    clock.advance(6000)
    expect(await shutdown.stopped).toMatchObject({ outcome: 'drained', exitCode: 0, totalMs: 9000 })
  })

  it('DRN-5 holds for a clock that jumps over every instant at once', async () => {
    const { core, clock, hold, shutdown, platform } = wayOut(oneAtATime)
    hold()
    void shutdown.begin('SIGTERM')
    clock.set(100_000)
    clock.advance(0)
    expect([shutdown.phase, platform.told, core.state]).toEqual(['stopped', ['cut'], 'stopped'])
    expect(await shutdown.stopped).toMatchObject({ outcome: 'cut' })
  })

  it('DRN-5 all windows 0: cuts at once', async () => {
    const { hold, shutdown, platform } = wayOut(oneAtATime)
    hold()
    const { outcome, totalMs } = await shutdown.begin('shutdown', { announceMs: 0, finishMs: 0, closeMs: 0 })
    expect([outcome, totalMs, platform.told]).toEqual(['cut', 0, ['cut']])
  })
})

describe('a second signal', () => {
  it.each([
    ['announcing', 0],
    ['finishing', 3000],
    ['closing', 8000],
  ])('DRN-5 forces while %s', async (phase, afterMs) => {
    const { core, clock, hold, flush, shutdown, platform } = wayOut(oneAtATime)
    const [running, waiting] = [hold(), hold()]
    platform.sockets = 2
    void shutdown.begin('SIGTERM')
    clock.advance(afterMs)
    expect(shutdown.phase).toBe(phase)
    shutdown.force()
    await flush()
    expect(platform.told).toEqual(['cut'])
    expect(waiting.refusal?.reason).toBe('stopped')
    expect(await shutdown.stopped).toMatchObject({
      outcome: 'forced',
      exitCode: 1,
      atSeal: { active: 1, queued: 1 },
      finished: 0,
      refused: 0,
      cut: { active: 1, queued: 1, sockets: 2 },
      totalMs: afterMs,
    })
    running.release()
    clock.advance(0)
    expectQuiet({ core, clock })
  })

  it('DRN-5 forces while the platform stops, and counts no call that has ended', async () => {
    const { clock, flush, shutdown, platform } = wayOut()
    platform.sockets = 1
    void shutdown.begin('SIGTERM')
    clock.advance(3000)
    await flush()
    shutdown.force()
    expect(platform.told).toEqual(['stop', 'cut'])
    expect(await shutdown.stopped).toMatchObject({ outcome: 'forced', cut: { active: 0, queued: 0, sockets: 1 } })
  })

  it('DRN-5 changes nothing before the first and after the end', async () => {
    const { clock, flush, shutdown, platform, reports } = wayOut()
    shutdown.force()
    expect(shutdown.phase).toBe('serving')
    void shutdown.begin('SIGTERM', { announceMs: 0 })
    await flush()
    platform.stopping.resolve()
    await shutdown.stopped
    shutdown.force()
    clock.advance(10_000)
    expect(platform.told).toEqual(['stop'])
    expect(reports).toHaveLength(1)
  })
})

describe('joining', () => {
  it('DRN-7 a second beginning joins the first: same promise, no later deadline', async () => {
    const { clock, hold, shutdown } = wayOut(oneAtATime)
    hold()
    const first = shutdown.begin('SIGTERM')
    clock.advance(1000)
    expect(shutdown.begin('shutdown', { announceMs: 9000, finishMs: 9000 })).toBe(first)
    clock.advance(2000)
    expect(shutdown.phase).toBe('finishing')
    clock.advance(6000)
    expect(await first).toMatchObject({ reason: 'SIGTERM', totalMs: 9000 })
  })

  it('DRN-7 a second beginning may bring every instant nearer', async () => {
    const { clock, hold, shutdown } = wayOut(oneAtATime)
    hold()
    void shutdown.begin('SIGTERM')
    clock.advance(1000)
    void shutdown.begin('shutdown', { announceMs: 500, finishMs: 500, closeMs: 500 })
    clock.advance(500)
    expect(shutdown.phase).toBe('finishing')
    clock.advance(500)
    expect(shutdown.phase).toBe('closing')
    clock.advance(500)
    expect(await shutdown.stopped).toMatchObject({ outcome: 'cut', totalMs: 2500 })
  })

  it('DRN-7 a drain that refuses calls already leaves nothing to announce', async () => {
    const { core, clock, hold, shutdown } = wayOut(oneAtATime)
    const running = hold()
    core.drain()
    void shutdown.begin('SIGTERM')
    expect(shutdown.phase).toBe('finishing')
    clock.advance(8000) // the announcement's time is not lost
    expect(shutdown.phase).toBe('closing')
    running.release()
  })

  it('DRN-7 an announcement under way keeps its end when that is nearer', () => {
    const { core, clock, shutdown } = wayOut(oneAtATime)
    core.drain({ announceMs: 1000 })
    clock.advance(500)
    void shutdown.begin('SIGTERM')
    expect(reasonOf(core)).toBeUndefined()
    clock.advance(500)
    expect(reasonOf(core)).toBe('draining')
  })

  it('DRN-7 an announcement under way is shortened when its end is further off', () => {
    const { core, clock, shutdown } = wayOut(oneAtATime)
    core.drain({ announceMs: 60_000 })
    void shutdown.begin('SIGTERM')
    clock.advance(3000)
    expect(reasonOf(core)).toBe('draining')
  })

  it('DRN-6 goes on from a core that was stopped before', async () => {
    const { core, hold, flush, shutdown, platform } = wayOut(oneAtATime)
    const running = hold()
    void core.stop()
    void shutdown.begin('SIGTERM')
    expect(shutdown.phase).toBe('finishing')
    running.release()
    await flush()
    platform.stopping.resolve()
    expect(await shutdown.stopped).toMatchObject({ outcome: 'drained', finished: 1 })
  })

  it('DRN-6 goes on when the core is stopped on the way', async () => {
    const { core, clock, flush, shutdown, platform } = wayOut(oneAtATime)
    void shutdown.begin('SIGTERM')
    clock.advance(1000)
    void core.stop()
    clock.advance(2000)
    await flush()
    platform.stopping.resolve()
    expect(await shutdown.stopped).toMatchObject({ outcome: 'drained', totalMs: 3000 })
  })

  it('DRN-1 DRN-5 an operator who resumes cannot keep a process that goes', async () => {
    const { core, clock, hold, flush, shutdown, platform } = wayOut({ global: { concurrency: 2 } })
    const running = hold()
    void shutdown.begin('SIGTERM')
    core.resume()
    clock.advance(3000)
    expect(reasonOf(core)).toBe('draining')
    core.resume()
    running.release() // idle now, but a call comes in before anybody acts on that
    const late = hold()
    await flush()
    expect([shutdown.phase, reasonOf(core), platform.told]).toEqual(['finishing', 'draining', []])
    late.release()
    await flush()
    platform.stopping.resolve()
    expect(await shutdown.stopped).toMatchObject({ outcome: 'drained' })
  })

  it('ADX-5 names what began it to the audit hook', () => {
    const who: unknown[] = []
    const { shutdown } = wayOut({}, {}, { onPublish: (event) => void who.push(event.who) })
    void shutdown.begin('SIGTERM')
    expect(who).toEqual(['SIGTERM'])
  })
})

describe('the announcer', () => {
  it('GWY-7 is told of the draining before anybody is refused, and of the end when nothing runs any more', async () => {
    const announcer = new FakeAnnouncer()
    const { core, clock, hold, flush, shutdown, platform } = wayOut({ global: { concurrency: 2 } }, { announcer })
    const running = hold()
    void shutdown.begin('SIGTERM')
    expect(announcer.told).toEqual(['draining: SIGTERM'])
    expect(reasonOf(core)).toBeUndefined()
    announcer.answers.draining.resolve()
    await flush()
    clock.advance(3000)
    running.release()
    await flush()
    expect(announcer.told).toEqual(['draining: SIGTERM', 'offline'])
    platform.stopping.resolve()
    await flush()
    expect(shutdown.phase).toBe('closing') // until the gateways have heard
    announcer.answers.offline.resolve()
    expect(await shutdown.stopped).toMatchObject({ outcome: 'drained', errors: [] })
  })

  it('GWY-7 DRN-5 nobody is refused before gateways have heard, however short the announcement', async () => {
    const announcer = new FakeAnnouncer()
    const { core, clock, flush, shutdown, phases } = wayOut({}, { announcer })
    void shutdown.begin('SIGTERM', { announceMs: 0 })
    await flush()
    clock.advance(1200)
    expect(shutdown.phase).toBe('announcing')
    expect(reasonOf(core)).toBeUndefined()
    announcer.answers.draining.resolve()
    await flush()
    clock.advance(0)
    await flush()
    expect(phases).toEqual(['announcing', 'finishing', 'closing'])
    expect(reasonOf(core)).toBe('stopped')
  })

  it('GWY-7 DRN-5 gateways that do not answer take their time from finishing, not from the end', async () => {
    const announcer = new FakeAnnouncer()
    const { core, clock, flush, hold, shutdown } = wayOut({ global: { concurrency: 2 } }, { announcer })
    hold()
    void shutdown.begin('SIGTERM')
    clock.advance(7999)
    expect([shutdown.phase, reasonOf(core)]).toEqual(['announcing', undefined])
    clock.advance(1)
    expect([shutdown.phase, reasonOf(core)]).toEqual(['closing', 'stopped'])
    clock.advance(1000)
    await flush()
    expect(await shutdown.stopped).toMatchObject({ outcome: 'cut', totalMs: 9000 })
  })

  it('GWY-7 is told of the draining even when nothing is announced to anybody else', () => {
    const announcer = new FakeAnnouncer()
    const { core, shutdown } = wayOut(oneAtATime, { announcer })
    core.drain()
    void shutdown.begin('SIGTERM')
    expect(announcer.told).toEqual(['draining: SIGTERM'])
  })

  it('GWY-7 an end that is never answered holds the end up until the deadline at most', async () => {
    const announcer = new FakeAnnouncer()
    const { clock, flush, shutdown, platform } = wayOut({}, { announcer })
    announcer.answers.draining.resolve()
    void shutdown.begin('SIGTERM')
    await flush()
    clock.advance(3000)
    await flush()
    platform.stopping.resolve()
    await flush()
    clock.advance(5999)
    expect(shutdown.phase).toBe('closing')
    clock.advance(1)
    expect(await shutdown.stopped).toMatchObject({
      outcome: 'drained',
      errors: ['Telling gateways of the end: no answer by the deadline'],
    })
    expect(platform.told).toEqual(['stop']) // nothing is open any more
  })

  it('GWY-7 throwing or rejecting holds up nothing and is written down', async () => {
    const announcer = {
      start: () => undefined,
      draining: () => {
        throw new Error('no gateway')
      },
      offline: () => Promise.reject(new Error('still none')),
    }
    const { clock, flush, shutdown, platform } = wayOut({}, { announcer })
    void shutdown.begin('SIGTERM')
    await flush()
    clock.advance(3000)
    await flush()
    platform.stopping.resolve()
    expect(await shutdown.stopped).toMatchObject({
      outcome: 'drained',
      totalMs: 3000,
      errors: ['Telling gateways to turn away: no gateway', 'Telling gateways of the end: still none'],
    })
  })

  it('GWY-7 is told of the end when a second signal forces it, and not waited for', async () => {
    const announcer = new FakeAnnouncer()
    const { shutdown } = wayOut({}, { announcer })
    void shutdown.begin('SIGTERM')
    shutdown.force()
    expect(announcer.told).toEqual(['draining: SIGTERM', 'offline'])
    expect((await shutdown.stopped).outcome).toBe('forced')
  })
})

describe('what goes wrong', () => {
  it('DRN-5 a platform whose stop fails is cut', async () => {
    const { clock, flush, shutdown, platform } = wayOut()
    void shutdown.begin('SIGTERM')
    clock.advance(3000)
    await flush()
    platform.sockets = 1
    platform.stopping.reject(new Error('not running'))
    expect(await shutdown.stopped).toMatchObject({
      outcome: 'cut',
      cut: { active: 0, queued: 0, sockets: 1 },
      errors: ['Stopping the server: not running'],
    })
    expect(platform.told).toEqual(['stop', 'cut'])
  })

  it('DRN-5 a platform whose cut fails does not keep the process', async () => {
    const platform = {
      stop: () => new Promise<void>(() => undefined),
      cut: () => {
        throw new Error('gone')
      },
    }
    const { clock, shutdown } = wayOut({}, { platform })
    void shutdown.begin('SIGTERM')
    clock.advance(9000)
    expect(await shutdown.stopped).toMatchObject({ outcome: 'drained', errors: ['Cutting connections: gone'] })
  })

  it('DRN-5 hooks that throw fail nobody', async () => {
    const fail = (): never => {
      throw new Error('hook')
    }
    const { clock, flush, shutdown, platform } = wayOut({}, { onPhase: fail, onReport: fail })
    void shutdown.begin('SIGTERM')
    clock.advance(3000)
    await flush()
    platform.stopping.resolve()
    const { outcome, errors } = await shutdown.stopped
    expect([outcome, errors.length]).toEqual(['drained', 4])
  })

  it('DRN-5 a hook that asks for the end while a phase begins is heeded', async () => {
    const parts = {
      onPhase: (phase: string) => {
        if (phase === 'finishing') void way.shutdown.begin('hook', { announceMs: 0, finishMs: 0, closeMs: 0 })
      },
    }
    const way = wayOut(oneAtATime, parts)
    way.hold()
    void way.shutdown.begin('SIGTERM')
    way.clock.advance(3000)
    expect(way.shutdown.phase).toBe('stopped')
    expect(await way.shutdown.stopped).toMatchObject({ outcome: 'cut', totalMs: 3000 })
  })

  it('DRN-5 windows that no timer can keep are refused', () => {
    const { shutdown } = wayOut()
    for (const ms of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31]) {
      expect(() => shutdown.begin('shutdown', { finishMs: ms })).toThrow(RangeError)
    }
    expect(shutdown.phase).toBe('serving')
    expect(completeWindows({ closeMs: undefined, finishMs: 0 }, DEFAULT_WINDOWS)).toEqual({
      announceMs: 3000,
      finishMs: 0,
      closeMs: 1000,
    })
  })
})
