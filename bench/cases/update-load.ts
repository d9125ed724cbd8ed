import { type Group, median, type Reading, type Size } from '../engine.ts'
import { disturbanceReading, disturbanceRemarks, quieterHalf } from '../load/quiet.ts'
import { perSecond, Rig, type Window } from '../load/rig.ts'
import { CHANGED } from './limits.ts'

interface Pace {
  readonly rules: number
  readonly rounds: number
  readonly warmMs: number
  readonly windowMs: number
  readonly updates: number
}

const PACES: { readonly [S in Size]: Pace } = {
  quick: { rules: 1000, rounds: 1, warmMs: 50, windowMs: 200, updates: 4 },
  full: { rules: 10_000, rounds: 5, warmMs: 500, windowMs: 2500, updates: 20 },
}
const APP = 'rules'
const PART_OF_CAPACITY = 0.5
const CONNECTIONS = 32
const MAX_CONNECTIONS = 4096
const LEAD_MS = 100

/** A window and what the event loop did in it. */
interface Watched {
  readonly window: Window
  readonly blocksMs: readonly number[]
  readonly tookMs: readonly number[]
}

interface Round {
  readonly capacity: Window
  readonly quiet: Watched
  readonly updated: Watched
}

/** At half of what the server can do: what its callers feel of updates, beside a window in which there are none. */
async function underLoad(size: Size): Promise<readonly Reading[]> {
  const pace = PACES[size]
  const rounds = await Rig.during('rules', pace.rules, async (rig) => {
    await rig.closed(APP, { connections: CONNECTIONS, forMs: pace.warmMs })
    for (let update = 0; update < pace.updates; update += 1) await rig.update()
    const all: Round[] = []
    let updateMs = 20
    for (let round = 0; round < pace.rounds; round += 1) {
      if (size === 'full') await rig.quiet()
      const capacity = await rig.closed(APP, { connections: CONNECTIONS, forMs: pace.warmMs })
      const requestsPerS = perSecond(capacity) * PART_OF_CAPACITY
      // In the quiet one the event loop is watched at the same times, so that watching costs both the same.
      const watch = async (): Promise<{ blockMs: number; tookMs: number }> => {
        const { blockMs } = await rig.watch(updateMs)
        return { blockMs, tookMs: updateMs }
      }
      const update = async (): Promise<{ blockMs: number; tookMs: number }> => {
        const report = await rig.update()
        if (report.changed !== CHANGED) throw new Error(`An update has changed ${report.changed} rules`)
        return report
      }
      const windows: Watched[] = []
      const acts = round % 2 === 0 ? [watch, update] : [update, watch]
      for (const act of acts) windows.push(await watched(rig, requestsPerS, pace, act))
      const [first, second] = windows
      if (first === undefined || second === undefined) throw new Error('A window is missing')
      const [quiet, updated] = round % 2 === 0 ? [first, second] : [second, first]
      updateMs = median(updated.tookMs)
      all.push({ capacity, quiet, updated })
    }
    return all
  })
  return readingsOf(rounds, pace)
}

/** A window in which something is done so many times, evenly spread. */
async function watched(
  rig: Rig,
  requestsPerS: number,
  { windowMs, updates }: Pace,
  act: () => Promise<{ blockMs: number; tookMs: number }>,
): Promise<Watched> {
  const loop = { requestsPerS, leadMs: LEAD_MS, forMs: windowMs, maxConnections: MAX_CONNECTIONS }
  const running = rig.open(APP, { ...loop, goodWithinMs: Number.MAX_VALUE })
  const startMs = performance.now() + LEAD_MS
  const reports: { blockMs: number; tookMs: number }[] = []
  const acting = async (): Promise<void> => {
    for (let count = 0; count < updates; count += 1) {
      const dueMs = startMs + ((count + 0.5) * windowMs) / updates
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs - performance.now())))
      reports.push(await act())
    }
  }
  const [window] = await Promise.all([running, acting()])
  if (window.admitted !== window.sent) throw new Error(`${window.sent - window.admitted} requests were not let in`)
  return {
    window,
    blocksMs: reports.map(({ blockMs }) => blockMs),
    tookMs: reports.map(({ tookMs }) => tookMs),
  }
}

function readingsOf(all: readonly Round[], { rules }: Pace): readonly Reading[] {
  const rounds = quieterHalf(all, ({ quiet, updated }) =>
    Math.max(quiet.window.disturbance, updated.window.disturbance),
  )
  const name = `update.load@${rules}`
  const readings: Reading[] = []
  const cell = (row: string, column: string, of: (round: Round) => number | null): void => {
    const value = median(rounds.map((round) => of(round) ?? Number.NaN))
    readings.push({ name: `${name}.${row}`, column, value, unit: '' })
  }
  for (const row of ['capacity', 'quiet', 'updated'] as const) {
    const of = (round: Round): Window => (row === 'capacity' ? round.capacity : round[row].window)
    cell(row, 'requests/s', (round) => perSecond(of(round)))
    cell(row, 'p50 ms', (round) => of(round).admittedMs.p50)
    cell(row, 'p99 ms', (round) => of(round).admittedMs.p99)
    cell(row, 'max ms', (round) => of(round).admittedMs.max)
    cell(row, 'server CPU %', (round) => (of(round).serverCpuMs / of(round).elapsedMs) * 100)
    const disturbances = rounds.map((round) => of(round).disturbance)
    readings.push(disturbanceReading(`${name}.${row}`, disturbances))
    if (row === 'capacity') continue
    cell(row, 'sent late p99 ms', (round) => of(round).lateMs.p99)
    cell(row, 'longest block ms, median', (round) => median(round[row].blocksMs))
    cell(row, 'longest block ms, max', (round) => Math.max(...round[row].blocksMs))
    if (row === 'updated') cell(row, 'update ms', (round) => median(round[row].tookMs))
  }
  const ratio = (what: string, of: (window: Window) => number | null): void => {
    const value = median(
      rounds.map(({ quiet, updated }) => (of(updated.window) ?? Number.NaN) / (of(quiet.window) ?? Number.NaN)),
    )
    readings.push({ name: `${name}.updated : quiet, ${what}`, value, unit: '×' })
  }
  ratio('p50', ({ admittedMs }) => admittedMs.p50)
  ratio('p99', ({ admittedMs }) => admittedMs.p99)
  ratio('max', ({ admittedMs }) => admittedMs.max)
  return readings
}

export const updateLoadGroup: Group = {
  name: 'update.load',
  contestants: () => [],
  ratios: [],
  processes: 1,
  probe: underLoad,
  remarks: disturbanceRemarks,
}
