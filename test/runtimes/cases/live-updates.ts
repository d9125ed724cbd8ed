import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { ConfigInput } from '../../../src/core.ts'
import { Connection, get } from '../client.ts'
import { type Case, IS_FULL, type Lab } from '../lab.ts'

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
]
