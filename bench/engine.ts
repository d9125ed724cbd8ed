import { measure } from 'mitata'
import { collect, countsBytesExactly, heapBytes } from './host.ts'
import type { CountingClock } from './still-clock.ts'

/** One thing to be measured: does n operations and says what came of them. */
export interface Subject {
  /** Does n operations; the answer is a checksum of what they did. n is a multiple of `step`. */
  run(n: number): number | Promise<number>
  /** What `run(n)` must answer, every time: a case that is broken, or optimised away, cannot. */
  expected(n: number): number
  /** Operations that belong together, such as one queue filled and drained. Default 1. */
  readonly step?: number
  /** Whose readings and timers are counted. */
  readonly clock?: CountingClock
  /** Counts that do not depend on the machine, and must hold on every one. */
  readonly exact?: Exact
  /** Throws if, after all runs, anything is not as it must be. */
  verify?(): void
}

export interface Exact {
  /** Bytes allocated for an operation, at most; held where the engine counts exactly. */
  readonly maxBytes?: number
  /** Clock readings for an operation, exactly. */
  readonly clockReads?: number
  /** Host timers started for 1,000 operations, at most. */
  readonly maxTimersPer1000?: number
}

export interface Contestant {
  readonly name: string
  make(): Subject | Promise<Subject>
}

/** Contestants that are measured by turns in one process, and which of them are to be compared. */
export interface Group {
  readonly name: string
  contestants(size: Size): readonly Contestant[]
  readonly ratios: readonly Ratio[]
  /** Numbers that are no time of an operation: heap, leaks, longest blocks, what happens on sockets. */
  probe?(size: Size): Promise<readonly Reading[]>
  /** What must be said of the figures, so that nobody believes more of them than is true. */
  remarks?(readings: readonly Reading[]): readonly string[]
  /** How many processes are enough: those that measure in rounds of their own need no more. Default: as many as asked. */
  readonly processes?: number
}

export interface Ratio {
  readonly of: string
  /** The yardstick; of several, their sum. */
  readonly to: readonly string[]
  /** Number of the goal in `README.md`, and the ratio that meets it. */
  readonly goal?: string
  readonly max?: number
}

/** A number with its unit and, if there is one, the bound that meets a goal. A hard one fails the run. */
export interface Reading {
  readonly name: string
  /** Stands in the table of cases: in the row of its name, under this heading. */
  readonly column?: string
  readonly value: number
  readonly unit: string
  readonly goal?: string
  readonly max?: number
  readonly min?: number
  readonly isHard?: boolean
}

export type Size = 'quick' | 'full'

/** Times of one contestant in one round, nanoseconds for an operation. */
export interface Timing {
  readonly p50: number
  /** Of all samples: collections are part of it. */
  readonly mean: number
}

export interface Measured {
  readonly name: string
  readonly rounds: readonly Timing[]
  /** Bytes allocated for an operation. */
  readonly bytes: number
  readonly clockReads: number | null // for an operation; null: not counted
  readonly timersPer1000: number | null
  /** What must not be, in words. */
  readonly faults: readonly string[]
}

interface Pace {
  readonly rounds: number
  readonly sampleMs: number
  /** For contestants whose bytes are exact, the other for the rest: what is compiled allocates less than what is not. */
  readonly warmExactMs: number
  readonly warmMs: number
  readonly roundMs: number
  readonly minSamples: number
  /** Fewer where one takes long: then the machine disturbs each of them alike, and a group must not take minutes. */
  readonly minLongSamples: number
}

const LONG_SAMPLE_MS = 20

const PACES: { readonly [S in Size]: Pace } = {
  quick: { rounds: 1, sampleMs: 0.2, warmExactMs: 60, warmMs: 1, roundMs: 1, minSamples: 2, minLongSamples: 2 },
  full: { rounds: 5, sampleMs: 0.25, warmExactMs: 250, warmMs: 250, roundMs: 80, minSamples: 12, minLongSamples: 3 },
}
const NOISE_BYTES = 2 // of compilers at work; an object has no less than 16 on V8
const BYTES_AT_ONCE = 4 * 2 ** 20 // stays within the nursery, so that nothing is collected while it is counted

/** Measures contestants by turns, so that what disturbs the machine disturbs them alike. */
export async function measureAll(contestants: readonly Contestant[], size: Size): Promise<readonly Measured[]> {
  const pace = PACES[size]
  const entrants: Entrant[] = []
  for (const { name, make } of contestants) {
    const subject = await make()
    const { n, sampleMs } = await warmUp(name, subject, pace)
    const minSamples = sampleMs > LONG_SAMPLE_MS ? pace.minLongSamples : pace.minSamples
    entrants.push({ name, subject, n, minSamples, rounds: [] })
  }
  for (let round = 0; round < pace.rounds; round += 1) {
    const turns = round % 2 === 0 ? entrants : entrants.toReversed()
    for (const entrant of turns) entrant.rounds.push(await timeOf(entrant, pace))
  }
  const measured: Measured[] = []
  for (const { name, subject, n, rounds } of entrants) {
    const bytes = await bytesOf(subject, n)
    const counts = await countsOf(subject)
    subject.verify?.()
    measured.push({ name, rounds, bytes, ...counts, faults: faultsOf(subject.exact ?? {}, bytes, counts) })
  }
  return measured
}

interface Entrant {
  readonly name: string
  readonly subject: Subject
  readonly n: number // operations in a sample
  readonly minSamples: number
  readonly rounds: Timing[]
}

/** Runs until compilers have had their time; finds how many operations make a sample, and how long one takes. */
async function warmUp(
  name: string,
  subject: Subject,
  { sampleMs, warmExactMs, ...pace }: Pace,
): Promise<{ readonly n: number; readonly sampleMs: number }> {
  const { step = 1, exact } = subject
  const warmMs = exact?.maxBytes === undefined ? pace.warmMs : warmExactMs
  let n = step
  const startMs = performance.now()
  for (;;) {
    let quickestMs = Number.POSITIVE_INFINITY // one that was interrupted would make samples too small
    for (let tries = 0; tries < 3 && quickestMs >= sampleMs; tries += 1) {
      const beginMs = performance.now()
      await checkedRun(name, subject, n)
      quickestMs = Math.min(quickestMs, performance.now() - beginMs)
    }
    if (quickestMs < sampleMs) n *= 2
    else if (performance.now() - startMs >= warmMs) return { n, sampleMs: quickestMs }
  }
}

async function timeOf({ name, subject, n, minSamples }: Entrant, pace: Pace): Promise<Timing> {
  collect()
  // A collection takes compiled code away that no live object needs, and with it what an update was warmed up for.
  const warmUntilMs = performance.now() + pace.roundMs
  while (performance.now() < warmUntilMs) await checkedRun(name, subject, n)
  const stopwatch = new Stopwatch()
  const { p50 } = await measure(() => checkedRun(name, subject, n), {
    now: () => stopwatch.read(),
    gc: false,
    batch_threshold: 0, // a sample is one run
    min_samples: minSamples,
    min_cpu_time: pace.roundMs * 1e6,
  })
  return { p50: p50 / n, mean: stopwatch.meanNs / n }
}

/** mitata drops the extreme samples; the mean with collections needs them, so it is taken where time is read. */
class Stopwatch {
  #reads = 0
  #lastNs = 0
  #totalNs = 0

  read(): number {
    const nowNs = 1e6 * performance.now()
    if (this.#reads % 2 === 1) this.#totalNs += nowNs - this.#lastNs
    this.#reads += 1
    this.#lastNs = nowNs
    return nowNs
  }

  get meanNs(): number {
    return this.#totalNs / (this.#reads / 2)
  }
}

function checkedRun(name: string, subject: Subject, n: number): undefined | Promise<undefined> {
  const sum = subject.run(n)
  if (typeof sum === 'number') return check(name, subject, n, sum)
  return sum.then((late) => check(name, subject, n, late))
}

function check(name: string, subject: Subject, n: number, sum: number): undefined {
  if (sum !== subject.expected(n)) {
    throw new Error(`${name} is broken: ${n} operations came to ${sum}, expected ${subject.expected(n)}`)
  }
  return undefined
}

/** `inSample`: operations that take about as long as a sample. */
async function bytesOf(subject: Subject, inSample: number): Promise<number> {
  const { step = 1, exact } = subject
  // Where bytes are no more than a lower bound, often 0, they say nothing about how many operations are enough.
  const most = countsBytesExactly ? 400_000 : Math.max(64, 64 * inSample)
  const sample = async (n: number): Promise<number> => {
    collect()
    const before = heapBytes()
    const sum = subject.run(n)
    if (typeof sum !== 'number') await sum
    return Math.max(0, heapBytes() - before) / n
  }
  const about = await sample(step * Math.ceil(64 / step))
  const n = step * Math.ceil(Math.min(most, Math.max(64, BYTES_AT_ONCE / Math.max(1, about))) / step)
  // The least: whatever else allocates meanwhile (a compiler) only adds. So one that is too many is looked at for longer.
  const { maxBytes } = exact ?? {}
  let least = Number.POSITIVE_INFINITY
  for (let count = 0; count < (maxBytes === undefined ? 2 : least > maxBytes + NOISE_BYTES ? 24 : 6); count += 1) {
    least = Math.min(least, await sample(n))
  }
  return least
}

async function countsOf({ run, clock, step = 1 }: Subject): Promise<Pick<Measured, 'clockReads' | 'timersPer1000'>> {
  if (clock === undefined) return { clockReads: null, timersPer1000: null }
  const n = step * Math.ceil(1000 / step)
  const { reads, timersStarted } = clock
  await run(n)
  return { clockReads: (clock.reads - reads) / n, timersPer1000: ((clock.timersStarted - timersStarted) / n) * 1000 }
}

function faultsOf(
  { maxBytes, clockReads, maxTimersPer1000 }: Exact,
  bytes: number,
  counts: Pick<Measured, 'clockReads' | 'timersPer1000'>,
): string[] {
  const faults: string[] = []
  if (maxBytes !== undefined && countsBytesExactly && bytes > maxBytes + NOISE_BYTES) {
    faults.push(`allocates ${bytes.toFixed(1)} bytes for an operation, not ${maxBytes}`)
  }
  if (clockReads !== undefined && counts.clockReads !== clockReads) {
    faults.push(`reads the clock ${counts.clockReads} times for an operation, not ${clockReads}`)
  }
  if (maxTimersPer1000 !== undefined && (counts.timersPer1000 ?? Number.POSITIVE_INFINITY) > maxTimersPer1000) {
    faults.push(`starts ${counts.timersPer1000} timers for 1,000 operations, at most ${maxTimersPer1000} are expected`)
  }
  return faults
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  const high = sorted[Math.floor(middle)] ?? Number.NaN
  return sorted.length % 2 === 1 ? high : ((sorted[middle - 1] ?? Number.NaN) + high) / 2
}
