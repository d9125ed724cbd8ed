import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { ConfigInput } from '../../../src/core.ts'
import { Connection, get } from '../client.ts'
import { type Case, IS_FULL, type Lab, PUT_FIELDS } from '../lab.ts'

const LANES = 64
const LIMITS = [50, 5] as const
const EVERY_MS = 50
const SOAK_MS = IS_FULL ? 10_000 : 2000

/** Lanes go on all the time while an operator turns one limit up and down. */
async function soak(lab: Lab, maxQueuedCalls: number): Promise<string> {
  const config = (concurrency: number): ConfigInput => ({
    global: { concurrency },
    queue: { maxQueuedCalls, maxQueueDelayMs: 5000 },
  })
  await lab.configure(config(LIMITS[0]))
  const before = await lab.state()
  const statuses = new Map<number | undefined, number>()
  const endMs = Date.now() + SOAK_MS
  const lane = async (): Promise<void> => {
    const connection = new Connection(lab.port)
    while (Date.now() < endMs) {
      const answer = await connection.send(get('/work/sleep?ms=5'))
      statuses.set(answer?.status, (statuses.get(answer?.status) ?? 0) + 1)
      if (answer === undefined) break
    }
    connection.fin()
  }
  let updates = 0
  const operator = async (): Promise<void> => {
    while (Date.now() < endMs) {
      await sleep(EVERY_MS)
      updates += 1
      const answer = await lab.put(config(LIMITS[updates % 2] ?? 0))
      expect(answer?.status).toBe(200)
    }
  }
  await Promise.all([operator(), ...Array.from({ length: LANES }, lane)])
  await lab.quiet()

  const [after, counts] = await Promise.all([lab.state(), lab.counts()])
  const served = statuses.get(200) ?? 0
  const refused = statuses.get(503) ?? 0
  const refusedTotal = (state: typeof after): number => Object.values(state.totals.refused).reduce((a, b) => a + b, 0)
  expect([...statuses.values()].reduce((a, b) => a + b, 0)).toBe(served + refused)
  expect(counts).toMatchObject({ violations: 0, started: served, finished: served })
  expect(after.totals.admitted - before.totals.admitted).toBe(served)
  expect(refusedTotal(after) - refusedTotal(before)).toBe(refused)
  expect(after.generation - before.generation).toBe(updates)
  expect(after.generations).toHaveLength(1)
  expect(counts.atTheLimit).toBeGreaterThan(10)
  if (maxQueuedCalls >= LANES) expect(refused).toBe(0)
  return `${served} + ${refused} refused, ${updates} updates, full at ${counts.atTheLimit} starts`
}

const SCOPES = 10_000

/** An operator puts a configuration that is prepared in many steps; each time one limit of it is another. */
async function putLarge(lab: Lab): Promise<string> {
  const areas = Array.from({ length: SCOPES }, (_, index) => [`/area-${index}`, { concurrency: 10 }])
  const config = (concurrency: number): ConfigInput => ({
    global: { concurrency },
    queue: { maxQueuedCalls: 1000, maxQueueDelayMs: 5000 },
    contracts: Object.fromEntries(areas),
  })
  await lab.configure(config(20))
  const { generation } = await lab.state()
  let isOver = false
  let served = 0
  const lane = async (): Promise<void> => {
    const connection = new Connection(lab.port)
    while (!isOver) {
      const answer = await connection.send(get('/work/sleep?ms=5'))
      expect(answer?.status).toBe(200)
      served += 1
    }
    connection.fin()
  }
  const lanes = Array.from({ length: 16 }, lane)
  for (const limit of [2, 16, 4]) expect((await lab.put(config(limit)))?.status).toBe(200)
  isOver = true
  await Promise.all(lanes)
  await lab.quiet()
  expect((await lab.counts()).violations).toBe(0)
  const after = await lab.state()
  expect([after.generation, after.generations.length, after.scopes.length]).toEqual([generation + 3, 1, SCOPES + 1])
  expect(after.scopes.find(({ scope }) => scope === 'global')).toMatchObject({ limit: 4, active: 0, waiting: 0 })
  return `${served} served`
}

/** A byte order mark is one only where the document begins, and elsewhere a character, also where a piece begins. */
async function putInPieces(lab: Lab): Promise<undefined> {
  const mark = '\uFEFF'
  const config: ConfigInput = { contracts: { [`/a${mark}é`]: { concurrency: 1 } } }
  for (const [before, splitAt] of [
    ['', 17], // where the mark begins
    ['', 18],
    [mark, 2],
  ] as const) {
    const body = Buffer.from(before + JSON.stringify(config))
    const connection = new Connection(lab.port)
    const answered = connection.send(
      get('/admission/config', { ...PUT_FIELDS, 'Content-Length': `${body.length}` }, 'PUT'),
    )
    for (const piece of [body.subarray(0, splitAt), body.subarray(splitAt)]) {
      await sleep(50)
      connection.socket.write(piece)
    }
    const answer = Buffer.from((await answered)?.body ?? '', 'latin1').toString()
    expect(JSON.parse(answer)).toMatchObject({ config })
    connection.fin()
  }
  return undefined
}

export const liveUpdates: readonly Case[] = [
  {
    name: 'CON-4 handlers never exceed a limit that changes all the time, and all who wait are served',
    label: 'live updates, all can wait',
    run: (lab) => soak(lab, 1000),
  },
  {
    name: 'CON-4 handlers never exceed a limit that changes all the time, and every refusal is counted',
    label: 'live updates, few can wait',
    run: (lab) => soak(lab, 10),
  },
  {
    name: 'PUB-3 a configuration of ten thousand scopes is published while requests go on',
    label: 'large updates',
    run: putLarge,
  },
  {
    name: 'ADX-2 a configuration that comes in pieces is what was sent, wherever it was split',
    label: 'configuration in pieces',
    run: putInPieces,
  },
]
