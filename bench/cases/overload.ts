import { type Group, median, type Reading, type Size } from '../engine.ts'
import { Operator } from '../load/operator.ts'
import { POLICIES, type Policy, WAIT_MS } from '../load/policies.ts'
import { disturbanceReading, disturbanceRemarks, quieterHalf } from '../load/quiet.ts'
import { perSecond, Rig, type Window } from '../load/rig.ts'

interface Pace {
  readonly rounds: number
  /** Of each app, so that compilers have seen admission and refusal: a cold refusal costs ten times as much. */
  readonly warmMs: number
  readonly ceilingMs: number
  readonly leadMs: number
  readonly windowMs: number
  readonly loads: readonly number[]
  /**
   * Open before requests come. Node takes one new connection in a turn of its event loop, and a turn is long under
   * overload: those who need a new one wait where no server sees them.
   */
  readonly connections: number
  /** Connections that keep the server busy: so many handlers work for so long that waiting is nothing beside it. */
  readonly saturating: number
}

const PACES: { readonly [S in Size]: Pace } = {
  quick: {
    rounds: 1,
    warmMs: 50,
    ceilingMs: 50,
    leadMs: 30,
    windowMs: 100,
    loads: [0.6, 3],
    connections: 64,
    saturating: 16,
  },
  full: {
    rounds: 5,
    warmMs: 1000,
    ceilingMs: 300,
    leadMs: 300,
    windowMs: 500,
    loads: [0.6, 1.4, 3],
    connections: 1024,
    saturating: 128,
  },
}
const MAX_CONNECTIONS = 2048
const GOOD_WITHIN_MS = 100
const CHANGE_EVERY_MS = 100
const OVERLOAD = 3
/** In no goal: without admission nothing holds, and in a queue this long callers wait longer than they care to. */
const WITHOUT_GOAL = ['none', 'long-queue']

const GOODPUT = 'good : ceiling'
const P99 = 'p99 ms'

/** What a policy may answer when it refuses. */
const QUEUE_REASONS = ['queue_calls', 'queue_timeout']

interface Case {
  readonly name: string
  readonly load: number
  readonly policy: Policy
  readonly window: Window
  /** Of its round: what is completed when there is always more to do, and the processor time of one request. */
  readonly ceilingPerS: number
  readonly costMs: number
  readonly disturbance: number
  readonly changes: number
}

/** Measures the ceiling, and then offers parts and multiples of it to a policy; the next round the other way round. */
async function overload(size: Size): Promise<readonly Reading[]> {
  const pace = PACES[size]
  const ceilings: Window[] = []
  const cases: Case[] = []
  await Rig.during('overload', 0, async (rig) => {
    const saturated = async (): Promise<Window> => {
      await rig.connect('none', pace.saturating)
      return rig.closed('none', { connections: pace.saturating, forMs: pace.ceilingMs })
    }
    for (const app of rig.apps) {
      await rig.connect(app, pace.saturating)
      await rig.closed(app, { connections: pace.saturating, forMs: pace.warmMs })
    }
    for (let round = 0; round < pace.rounds; round += 1) {
      const turns = Object.entries(POLICIES)
      for (const [name, policy] of round % 2 === 0 ? turns : turns.reverse()) {
        if (size === 'full') await rig.quiet()
        const ceiling = await saturated()
        ceilings.push(ceiling)
        const of = { ceilingPerS: perSecond(ceiling), costMs: ceiling.serverCpuMs / ceiling.admitted }
        await rig.connect(name, pace.connections)
        for (const load of pace.loads) {
          const { window, changes } = await offered(rig, name, policy, load * of.ceilingPerS, pace)
          const disturbance = Math.max(window.disturbance, ceiling.disturbance)
          cases.push({ name, policy, load, ...of, window, changes, disturbance })
        }
        await rig.disconnect(name)
      }
    }
  })
  return [...ceilingReadings(ceilings), ...caseReadings(cases)]
}

async function offered(
  rig: Rig,
  app: string,
  { config, changes, limit }: Policy,
  requestsPerS: number,
  { leadMs, windowMs }: Pace,
): Promise<Pick<Case, 'window' | 'changes'>> {
  const loop = { requestsPerS, leadMs, forMs: windowMs, maxConnections: MAX_CONNECTIONS, goodWithinMs: GOOD_WITHIN_MS }
  let operator: Operator | undefined
  let isOver = false
  const [first] = changes
  if (config !== undefined && first !== undefined) {
    operator = await Operator.at(rig.address(app).port)
    await operator.set(config, first)
  }
  const measuring = rig.open(app, loop).finally(() => {
    isOver = true
  })
  const [window] = await Promise.all([
    measuring,
    operator?.change(config ?? {}, changes, CHANGE_EVERY_MS, () => isOver),
  ])
  const reasons = Object.keys(window.reasons)
  const expected = config === undefined ? [] : config.queue === undefined ? ['concurrency'] : QUEUE_REASONS
  const unexpected = reasons.filter((reason) => !expected.includes(reason))
  if (unexpected.length > 0) throw new Error(`${app} refuses for ${unexpected}`)
  if ((window.mostRunning ?? 0) > limit) throw new Error(`${app} runs ${window.mostRunning} handlers, not ${limit}`)
  return { window, changes: operator?.applied ?? 0 }
}

function ceilingReadings(all: readonly Window[]): readonly Reading[] {
  const ceilings = quieterHalf(all, ({ disturbance }) => disturbance)
  const cell = (column: string, of: (window: Window) => number): Reading => ({
    name: 'overload.ceiling',
    column,
    value: median(ceilings.map(of)),
    unit: '',
  })
  return [
    cell('good/s', perSecond),
    cell('good : ceiling', () => 1),
    cell('CPU ms/request', ({ serverCpuMs, admitted }) => serverCpuMs / admitted),
    cell('server CPU %', ({ serverCpuMs, elapsedMs }) => (serverCpuMs / elapsedMs) * 100),
    disturbanceReading(
      'overload.ceiling',
      ceilings.map(({ disturbance }) => disturbance),
    ),
  ]
}

/** What one window says, by column; null: there was nothing to be said. */
const COLUMNS: { readonly [column: string]: (each: Case) => number | null } = {
  'offered/s': ({ ceilingPerS, load }) => ceilingPerS * load,
  'good/s': goodPerS,
  [GOODPUT]: (each) => goodPerS(each) / each.ceilingPerS,
  [P99]: ({ window }) => window.admittedMs.p99,
  'refused %': ({ window }) => (window.refused / window.sent) * 100,
  'refused p99 ms': ({ window }) => window.refusedMs.p99,
  lost: ({ window }) => window.lost,
  'most running': ({ window }) => window.mostRunning,
  'sent late p99 ms': ({ window }) => window.lateMs.p99,
  'limits set': ({ changes, policy }) => (policy.changes.length === 0 ? null : changes),
}

function caseReadings(cases: readonly Case[]): readonly Reading[] {
  const readings: Reading[] = []
  for (const name of Object.keys(POLICIES)) {
    for (const load of new Set(cases.map((each) => each.load))) {
      const all = cases.filter((each) => each.name === name && each.load === load)
      const rounds = quieterHalf(all, ({ disturbance }) => disturbance)
      const row = `overload.${name}@${load}`
      for (const [column, of] of Object.entries(COLUMNS)) {
        const values = rounds.flatMap((each) => of(each) ?? [])
        if (values.length === 0) continue
        const goal = load === OVERLOAD && !WITHOUT_GOAL.includes(name) ? goalOf(column, rounds) : {}
        readings.push({ name: row, column, value: median(values), unit: '', ...goal })
      }
      const disturbances = rounds.map(({ disturbance }) => disturbance)
      readings.push(disturbanceReading(row, disturbances))
    }
  }
  return readings
}

function goalOf(column: string, cases: readonly Case[]): Partial<Reading> {
  if (column === GOODPUT) return { goal: 'P19', min: 0.8 }
  if (column !== P99) return {}
  const boundsMs = cases.map(({ costMs, policy }) => 2 * (policy.limit * costMs + WAIT_MS + policy.maxDelayMs))
  return { goal: 'P19', max: Math.round(median(boundsMs)) }
}

function goodPerS({ window, ceilingPerS, load }: Case): number {
  return (window.good / window.sent) * ceilingPerS * load
}

export const overloadGroup: Group = {
  name: 'socket.overload',
  contestants: () => [],
  ratios: [],
  processes: 1,
  probe: overload,
  remarks: disturbanceRemarks,
}
