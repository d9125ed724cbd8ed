import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Answer, Connection, fieldOf, get, once, post } from '../client.ts'
import { buildDrillServer, Drill, isInstalled, RUNTIMES } from './drill.ts'

beforeAll(buildDrillServer, 60_000)

const running: Drill[] = []
afterEach(() => {
  for (const drill of running.splice(0)) drill.kill('SIGKILL')
})

describe.each(RUNTIMES.filter(isInstalled))('%s', (runtime) => {
  const start: typeof Drill.start = async (_, options) => {
    const drill = await Drill.start(runtime, options)
    running.push(drill)
    return drill
  }

  it('DRN-5 loses nothing that was admitted: slow, waiting, uploaded, streamed, on kept connections', async () => {
    const drill = await start(runtime, { announceMs: 400 })
    const { port } = drill
    const idle = new Connection(port)
    await idle.send(get('/quick'))
    const silent = new Connection(port)
    const slow = new Connection(port)
    const slowAnswer = slow.send(get('/slow?ms=1500'))
    const one = once(port, get('/one?ms=900'))
    const waiting = once(port, get('/one?ms=300'))
    const streamed = once(port, get('/stream?chunks=12&ms=150'))
    const upload = new Connection(port)
    const uploaded = upload.send(get('/upload', { 'Content-Length': '12' }, 'POST'))
    const busy = keepBusy(port)
    await sleep(150)

    const atMs = performance.now()
    drill.kill('SIGTERM')
    for (const part of ['abc', 'def', 'ghi', 'jkl']) {
      await sleep(250)
      upload.write(part)
    }
    const answers = { slow: await slowAnswer, one: await one, waiting: await waiting, streamed: await streamed }
    expect(statusesAndBodies({ ...answers, uploaded: await uploaded })).toEqual({
      slow: '200 done after 1500',
      one: '200 done after 900',
      waiting: '200 done after 300',
      streamed: `200 ${'chunk '.repeat(12)}`,
      uploaded: '200 12',
    })
    expect(await drill.exited).toBe(0)
    expect(performance.now() - atMs).toBeLessThan(3500) // the longest of them took 2 s
    await Promise.all([idle.closed, silent.closed, slow.closed])
    expect(await busy).toMatchObject({ lost: 0, refusal: 503 })
    expect(await drill.report()).toMatchObject({
      outcome: 'drained',
      cut: { active: 0, queued: 0, sockets: 0 },
      errors: [],
    })
    expect(drill.lines.filter((line) => line.startsWith('phase'))).toEqual([
      'phase announcing',
      'phase finishing',
      'phase closing',
      'phase stopped',
    ])
    expect(drill.stderr).not.toMatch(/error|unhandled/i)
  })

  it('DRN-5 lets a slow reader have the whole of a large response', async () => {
    const drill = await start(runtime)
    const bytes = 16 * 1024 * 1024
    const reader = readSlowly(drill.port, get(`/large?bytes=${bytes}`))
    await sleep(150)
    drill.kill('SIGTERM')
    expect(await reader).toBeGreaterThanOrEqual(bytes)
    expect(await drill.exited).toBe(0)
  })

  it('DRN-4 RUN-5 announces first: not ready, alive, calls admitted; then refuses them as draining', async () => {
    const drill = await start(runtime, { announceMs: 700 })
    const { port } = drill
    const slow = once(port, get('/slow?ms=1600'))
    expect(await once(port, get('/readyz'))).toMatchObject({ status: 200 })
    drill.kill('SIGTERM')
    await drill.line('phase announcing')
    const admitted = await once(port, get('/quick'))
    expect(statusesAndBodies({ admitted })).toEqual({ admitted: '200 quick' })
    expect(admitted === undefined ? '' : fieldOf(admitted, 'connection')).toBe('close')
    const posted = await once(port, post('/upload', 'abc'))
    expect(posted?.status).toBe(200)
    expect(posted === undefined ? '' : fieldOf(posted, 'connection')).toBe('close')
    expect(await statuses(port, '/readyz', '/livez')).toEqual([503, 200])

    await drill.line('phase finishing')
    const refused = await once(port, get('/quick'))
    expect(refused?.status).toBe(503)
    expect(JSON.parse(refused?.body ?? '')).toMatchObject({ reason: 'draining' })
    const unread = await once(port, get('/upload', { 'Content-Length': '12' }, 'POST'))
    expect(unread?.status).toBe(503)
    // Deno may close after a body that was not read, and says so then.
    if (runtime !== 'deno') expect(unread === undefined ? '' : fieldOf(unread, 'connection')).not.toBe('close')
    expect(await statuses(port, '/readyz', '/livez')).toEqual([503, 200])
    expect((await slow)?.status).toBe(200)
    expect(await drill.exited).toBe(0)
    expect(await drill.report()).toMatchObject({ outcome: 'drained', refused: 2, finished: 1 })
  })

  it('DRN-5 cuts at the deadline what hangs, says so, and exits with 1', async () => {
    const drill = await start(runtime, { announceMs: 100, finishMs: 400, closeMs: 300 })
    const { port } = drill
    const hanging = once(port, get('/hang'))
    const one = once(port, get('/one?ms=20000'))
    const waiting = once(port, get('/one?ms=1'))
    await sleep(150)
    const atMs = performance.now()
    drill.kill('SIGTERM')
    const refused = await waiting
    expect([refused?.status, JSON.parse(refused?.body ?? '').reason]).toEqual([503, 'stopped'])
    expect([await hanging, await one]).toEqual([undefined, undefined])
    expect(await drill.exited).toBe(1)
    const tookMs = performance.now() - atMs
    expect(tookMs).toBeGreaterThan(750)
    expect(tookMs).toBeLessThan(2500)
    expect(await drill.report()).toMatchObject({
      outcome: 'cut',
      exitCode: 1,
      atSeal: { active: 2, queued: 1 },
      finished: 0,
      cut: { active: 2, queued: 1, sockets: 2 },
    })
  })

  it('DRN-5 cuts at the deadline a stream that never ends, though no call runs any more', async () => {
    const drill = await start(runtime, { announceMs: 0, finishMs: 300, closeMs: 300 })
    const streamed = once(drill.port, get('/stream?chunks=1000&ms=50'))
    await sleep(200)
    drill.kill('SIGTERM')
    expect(await streamed).toMatchObject({ status: 200, isComplete: false })
    expect(await drill.exited).toBe(1)
    expect(await drill.report()).toMatchObject({ outcome: 'cut', cut: { active: 0, queued: 0, sockets: 1 } })
  })

  it('DRN-5 a second signal forces: exit with 1 at once', async () => {
    const drill = await start(runtime, { announceMs: 5000 })
    const hanging = once(drill.port, get('/hang'))
    await sleep(150)
    drill.kill('SIGTERM')
    await drill.line('phase announcing')
    await sleep(150)
    const atMs = performance.now()
    drill.kill('SIGTERM')
    expect(await drill.exited).toBe(1)
    expect(performance.now() - atMs).toBeLessThan(1500)
    expect(await hanging).toBeUndefined()
    expect(await drill.report()).toMatchObject({ outcome: 'forced', cut: { active: 1, queued: 0, sockets: 1 } })
  })

  it('DRN-5 SIGINT does the same as SIGTERM', async () => {
    const drill = await start(runtime)
    drill.kill('SIGINT')
    expect(await drill.exited).toBe(0)
    expect(await drill.report()).toMatchObject({ reason: 'SIGINT', outcome: 'drained' })
  })

  it('DRN-5 after shutdown() nothing of ours keeps the process alive', async () => {
    const drill = await start(runtime)
    expect((await once(drill.port, post('/shutdown', '')))?.status).toBe(200)
    expect(await drill.exited).toBe(0)
    expect(await drill.report()).toMatchObject({ reason: 'shutdown', outcome: 'drained' })
  })

  it('DRN-5 a rolling restart under load loses no request', async () => {
    const drills = await Promise.all([0, 1, 2].map(() => start(runtime, { announceMs: 1000 })))
    const fleet = new Fleet(drills)
    const load = Array.from({ length: 12 }, (_, client) => fleet.load(client))
    for (let each = 0; each < drills.length; each += 1) {
      const old = drills[each]
      const next = await start(runtime, { announceMs: 1000 })
      fleet.add(next)
      await sleep(150) // seen as ready
      old?.kill('SIGTERM')
      expect(await old?.exited).toBe(0)
    }
    fleet.isOver = true
    const tallies = await Promise.all(load)
    const sum = (of: (tally: LoadTally) => number): number => tallies.reduce((total, tally) => total + of(tally), 0)
    expect(sum(({ answered }) => answered)).toBeGreaterThan(500)
    expect(tallies.flatMap(({ lost }) => lost)).toEqual([])
  }, 40_000)
})

interface BusyTally {
  readonly answered: number
  readonly lost: number
  /** How it ended. */
  readonly refusal: number | 'closed'
}

/** One request after the other, on kept connections, until the server refuses. */
async function keepBusy(port: number): Promise<BusyTally> {
  let connection = new Connection(port)
  for (let answered = 0; ; answered += 1) {
    const answer = await connection.send(get('/quick'))
    if (answer === undefined) return { answered, lost: 1, refusal: 'closed' }
    if (answer.status !== 200) return { answered, lost: 0, refusal: answer.status }
    if (fieldOf(answer, 'connection') === 'close') {
      connection.fin()
      connection = new Connection(port)
    }
    await sleep(5)
  }
}

interface LoadTally {
  readonly answered: number
  readonly lost: readonly string[]
}

/** Instances, of which clients see every 100 ms which are ready, as a balancer would. */
class Fleet {
  isOver: boolean
  readonly #drills: Drill[]
  #ready: readonly Drill[]

  constructor(drills: readonly Drill[]) {
    this.isOver = false
    this.#drills = [...drills]
    this.#ready = drills
    void this.#watch()
  }

  add(drill: Drill): void {
    this.#drills.push(drill)
  }

  /** GETs and POSTs in turn, over kept connections, to whichever instance is ready. */
  async load(client: number): Promise<LoadTally> {
    const connections = new Map<Drill, Connection>()
    const lost: string[] = []
    let answered = 0
    for (let n = client; !this.isOver; n += 1) {
      const drill = this.#ready[n % this.#ready.length]
      if (drill === undefined) throw new Error('No instance is ready')
      let connection = connections.get(drill)
      if (connection === undefined || connection.isOver) connection = new Connection(drill.port)
      connections.set(drill, connection)
      const bytes = n % 2 === 0 ? get(`/slow?ms=${5 + (n % 20)}`) : post('/upload', 'abcdef')
      const answer = await connection.send(bytes)
      if (answer?.status === 200 && answer.isComplete) answered += 1
      else lost.push(`${bytes.slice(0, 12)}: ${answer?.status} ${answer?.body} (${drill.lines.at(-1)})`)
      if (answer !== undefined && fieldOf(answer, 'connection') === 'close') {
        connection.fin()
        connections.delete(drill)
      }
    }
    for (const connection of connections.values()) connection.fin()
    return { answered, lost }
  }

  async #watch(): Promise<void> {
    while (!this.isOver) {
      await sleep(100)
      const ready = await Promise.all(
        this.#drills.map(async (drill) => (await once(drill.port, get('/readyz')))?.status),
      )
      this.#ready = this.#drills.filter((_, n) => ready[n] === 200)
    }
  }
}

/** Reads 64 KiB or so every 2 ms until the server closes; the bytes that came. */
function readSlowly(port: number, bytes: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let received = 0
    const socket = connect({ host: '127.0.0.1', port }, () => socket.write(bytes))
    socket.on('data', (data) => {
      received += data.length
      socket.pause()
      setTimeout(() => socket.resume(), 2)
    })
    socket.on('close', () => resolve(received))
    socket.on('error', reject)
  })
}

async function statuses(port: number, ...paths: readonly string[]): Promise<readonly (number | undefined)[]> {
  const answers = await Promise.all(paths.map((path) => once(port, get(path))))
  return answers.map((answer) => answer?.status)
}

function statusesAndBodies(answers: { readonly [name: string]: Answer | undefined }): Record<string, string> {
  const lines = Object.entries(answers).map(([name, answer]) => [name, `${answer?.status} ${answer?.body}`])
  return Object.fromEntries(lines)
}
