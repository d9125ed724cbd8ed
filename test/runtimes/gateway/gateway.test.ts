import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { get, post } from '../client.ts'
import { buildServers, isInstalled, RUNTIMES, type Runtime } from './child.ts'
import { Fleet } from './fleet.ts'
import { Load, summarize, type Tally } from './load.ts'

/** The sizes that the specification asks for, instead of a short run. */
const IS_FULL = process.env.SLUICE_DRILL_FULL === '1'
const RESTARTS = IS_FULL ? 21 : 3
const LEAST_REQUESTS = IS_FULL ? 50_000 : 1000
const LANES = 64
/** In a short run the machine is not to be the bottleneck. */
const PAUSE_MS = IS_FULL ? 0 : 100
/** As shipped; or short, for instances wait until the gateway has heard, however long that takes. */
const ANNOUNCE_MS = IS_FULL ? 3000 : 500
const LIFE_MS = IS_FULL ? 1_200_000 : 180_000
const gatewayRuntime: Runtime = RUNTIMES.find((name) => name === process.env.SLUICE_DRILL_GATEWAY) ?? 'node'

beforeAll(() => buildServers('gateway'), 60_000)

describe.each(RUNTIMES.filter(isInstalled))('%s instances behind a gateway', (runtime) => {
  let fleet: Fleet
  const say = (what: string, figures: object): void =>
    console.log(`${runtime} behind ${gatewayRuntime}, ${what}: ${JSON.stringify(figures)}`)
  beforeAll(async () => {
    fleet = await Fleet.start({ runtime, gatewayRuntime, announceMs: ANNOUNCE_MS, lifeMs: LIFE_MS })
  }, 60_000)
  afterAll(() => fleet.end(), 20_000)

  it(
    `DRN-5 GWY-7 ${RESTARTS} restarts under ${LANES} lanes lose no request and close no connection`,
    async () => {
      const load = new Load(fleet.port, LANES, PAUSE_MS)
      const codes: (number | null)[] = []
      const sinceMs = performance.now()
      for (let restart = 0; restart < RESTARTS; restart += 1) {
        // By turns: a replacement on the port of its predecessor, whose sockets the gateway may still have, and elsewhere.
        codes.push(await fleet.restart(restart, 'SIGTERM', restart % 2 === 0))
      }
      while (load.answered < LEAST_REQUESTS && load.lost.length === 0) await sleep(20)
      const tally = await load.stop()
      const { toldMs } = fleet
      const gateway = await fleet.failures()
      say('rolling restart', { restarts: codes.length, ...figuresOf(tally, sinceMs), gateway, toldMs })
      expect(summarize(tally.lost)).toEqual({})
      expect(tally.closed).toBe(0)
      expect(codes).toEqual(codes.map(() => 0))
      // None was delivered twice: what is missing was counted by the processes that still run.
      expect(fleet.uploads).toBeLessThanOrEqual(tally.uploads)
    },
    LIFE_MS,
  )

  it(
    'DRN-5 the same restarts by the platform alone lose some, so that this drill sees losses',
    async () => {
      const load = new Load(fleet.port, LANES, 0)
      const sinceMs = performance.now()
      let restarts = 0
      for (; restarts < 3 && (IS_FULL || load.lost.length === 0); restarts += 1) {
        await sleep(200)
        await fleet.restart(restarts, 'SIGUSR2', restarts % 2 === 0)
      }
      const tally = await load.stop()
      say('platform stop alone', { restarts, ...figuresOf(tally, sinceMs) })
      expect(tally.lost.length).toBeGreaterThan(0)
    },
    LIFE_MS,
  )

  it(
    'GWY-5 a killed instance loses at most what was under way on it or sent before its ejection, and nothing after that',
    async () => {
      const before = await fleet.failures()
      const load = new Load(fleet.port, LANES, PAUSE_MS)
      while (load.answered < 200) await sleep(20)
      const sinceMs = performance.now()
      const { killedAtMs, ejectedAtMs, active, sentAfter } = await fleet.kill9(0)
      await sleep(700)
      const { unhealthy } = await fleet.lists()
      await fleet.replace(0, true)
      await sleep(200)
      const tally = await load.stop()
      const retried = (await fleet.failures()).retried - before.retried
      const ejectedMs = ejectedAtMs - killedAtMs
      say('kill -9', { active, sentAfter, ejectedMs, retried, ...figuresOf(tally, sinceMs) })
      expect(unhealthy.map(({ id }) => id)).toEqual(['orders-1'])
      expect(tally.lost.length).toBeLessThanOrEqual(active + sentAfter)
      expect(tally.lost.filter(({ sentAtMs }) => sentAtMs > ejectedAtMs)).toEqual([])
      // Two probes of 500 ms at the most, and what a busy machine needs.
      expect(ejectedMs).toBeLessThan(2000)
    },
    LIFE_MS,
  )

  it(
    'GWY-4 all draining: 503 at once, and what is under way ends in full',
    async () => {
      const slow = fleet.once(get('/slow/last?ms=400'))
      await sleep(100)
      for (const { child } of fleet.places) child.kill('SIGTERM')
      await fleet.until(({ draining }) => draining.length === fleet.places.length)
      const sinceMs = performance.now()
      const answers = await Promise.all([fleet.once(get('/quick/refused')), fleet.once(post('/upload', 'refused'))])
      const tookMs = performance.now() - sinceMs
      for (const answer of answers) {
        expect(answer?.status).toBe(503)
        expect(JSON.parse(answer?.body ?? '')).toMatchObject({ reason: 'all_draining' })
      }
      expect(tookMs).toBeLessThan(500)
      expect(await slow).toMatchObject({ status: 200, body: 'last' })
      expect(await Promise.all(fleet.places.map(({ child }) => child.exited))).toEqual([0, 0, 0])
      await fleet.until(({ healthy, unhealthy, draining }) => healthy.length + unhealthy.length + draining.length === 0)
      expect(JSON.parse((await fleet.once(get('/quick/refused')))?.body ?? '')).toMatchObject({
        reason: 'no_upstreams',
      })
    },
    LIFE_MS,
  )
})

function figuresOf({ answered, lost, closed }: Tally, sinceMs: number): object {
  const seconds = Math.round((performance.now() - sinceMs) / 100) / 10
  return { answered, lost: lost.length, closed, seconds, losses: summarize(lost) }
}
