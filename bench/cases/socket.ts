import { type Group, median, type Reading, type Size } from '../engine.ts'
import { disturbanceReading, disturbanceRemarks, quieterHalf } from '../load/quiet.ts'
import { perSecond, Rig, type Window } from '../load/rig.ts'

interface Pace {
  readonly rounds: number
  readonly warmMs: number
  readonly windowMs: number
}

const PACES: { readonly [S in Size]: Pace } = {
  quick: { rounds: 1, warmMs: 20, windowMs: 50 },
  full: { rounds: 30, warmMs: 1000, windowMs: 150 },
}
const CONNECTIONS = 32
const SATURATED = 90 // % of a core

/** What one window says of an app, by column. */
const COLUMNS: { readonly [column: string]: (window: Window) => number } = {
  'requests/s': perSecond,
  'p50 ms': ({ admittedMs }) => admittedMs.p50 ?? Number.NaN,
  'p99 ms': ({ admittedMs }) => admittedMs.p99 ?? Number.NaN,
  'server CPU µs/request': ({ serverCpuMs, admitted }) => (serverCpuMs / admitted) * 1000,
  'server CPU %': ({ serverCpuMs, elapsedMs }) => (serverCpuMs / elapsedMs) * 100,
  'generator CPU %': ({ cpuMs, elapsedMs }) => (cpuMs / elapsedMs) * 100,
}

interface Compared {
  readonly of: string
  readonly to: string
  readonly column: string
  readonly goal?: string
  readonly min?: number
}

const RATIOS: readonly Compared[] = [
  { of: 'admission', to: 'no-op', column: 'requests/s', goal: 'P18', min: 0.95 },
  ...['admission.rate', 'admission.disabled', 'hono-rate-limiter'].map((of) => ({
    of,
    to: 'no-op',
    column: 'requests/s',
  })),
  { of: 'admission', to: 'bare', column: 'requests/s' },
  ...['admission', 'admission.rate', 'admission.disabled', 'hono-rate-limiter'].map((of) => ({
    of,
    to: 'no-op',
    column: 'server CPU µs/request',
  })),
  { of: 'admission', to: 'bare', column: 'server CPU µs/request' },
]

/**
 * Every app by turns, in windows that follow each other at once, and in each round the other way round. Many short ones:
 * what disturbs the machine for longer than a round disturbs both sides of a ratio.
 */
async function light(size: Size): Promise<readonly Reading[]> {
  const pace = PACES[size]
  const all = await Rig.during('light', 0, async (rig) => {
    let sent = 0
    const windowOf = async (app: string, forMs: number): Promise<Window> => {
      const window = await rig.closed(app, { connections: CONNECTIONS, forMs })
      if (window.admitted !== window.sent) throw new Error(`${app}: ${window.sent - window.admitted} not let in`)
      if (app === 'admission') sent += window.sent
      return window
    }
    for (const app of rig.apps) {
      await rig.connect(app, CONNECTIONS)
      await windowOf(app, pace.warmMs)
    }
    const rounds: Map<string, Window>[] = []
    for (let round = 0; round < pace.rounds; round += 1) {
      if (size === 'full') await rig.quiet()
      const windows = new Map<string, Window>()
      for (const app of round % 2 === 0 ? rig.apps : rig.apps.toReversed()) {
        windows.set(app, await windowOf(app, pace.windowMs))
      }
      rounds.push(windows)
    }
    const { admitted } = await rig.counts('admission')
    if (admitted !== sent) throw new Error(`Admission has let in ${admitted} of ${sent}`)
    return rounds
  })

  const disturbanceOf = (windows: ReadonlyMap<string, Window>): number =>
    Math.max(...[...windows.values()].map(({ disturbance }) => disturbance))
  const rounds = quieterHalf(all, disturbanceOf)
  const figureOf = (windows: ReadonlyMap<string, Window>, app: string, column: string): number => {
    const window = windows.get(app)
    return window === undefined ? Number.NaN : (COLUMNS[column]?.(window) ?? Number.NaN)
  }
  const readings: Reading[] = []
  for (const app of all[0]?.keys() ?? []) {
    for (const column of Object.keys(COLUMNS)) {
      const value = median(rounds.map((windows) => figureOf(windows, app, column)))
      readings.push({ name: `socket.${app}`, column, value, unit: '' })
    }
    const disturbances = rounds.map((windows) => windows.get(app)?.disturbance ?? Number.NaN)
    readings.push(disturbanceReading(`socket.${app}`, disturbances))
  }
  for (const { of, to, column, ...goal } of RATIOS) {
    const value = median(rounds.map((windows) => figureOf(windows, of, column) / figureOf(windows, to, column)))
    readings.push({ name: `socket.${of} : socket.${to}, ${column}`, value, unit: '×', ...goal })
  }
  return readings
}

function remarks(readings: readonly Reading[]): readonly string[] {
  const saturated = readings.filter(({ column, value }) => column === 'generator CPU %' && value > SATURATED)
  const disturbed = disturbanceRemarks(readings)
  if (saturated.length === 0) return disturbed
  const names = saturated.map(({ name, value }) => `${name} (${Math.round(value)} %)`).join(', ')
  return [
    `The generator was near saturation in ${names}: requests/s and times are its own there, not those of the server, ` +
      'and their ratios are nearer to 1 than they should be. The processor time of the server stays right.',
    ...disturbed,
  ]
}

export const socketGroup: Group = {
  name: 'socket.light',
  contestants: () => [],
  ratios: [],
  processes: 1,
  probe: light,
  remarks,
}
