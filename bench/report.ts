import { type Group, type Measured, median, type Reading, type Timing } from './engine.ts'

/** What one process measured of a group. */
export interface GroupResult {
  readonly name: string
  readonly measured: readonly Measured[]
  readonly readings: readonly Reading[]
}

/** One line of the table of goals. */
export interface Verdict {
  readonly goal: string
  readonly what: string
  readonly value: string
  readonly wanted: string
  readonly isMet: boolean
}

interface Row {
  readonly name: string
  readonly p50: number
  readonly mean: number
  readonly bytes: number
  readonly counts: string
}

/** Tables of a group in Markdown, from all processes that measured it, and how its goals did. */
export function reportGroup(group: Group, results: readonly GroupResult[]): { text: string; verdicts: Verdict[] } {
  const lines: string[] = [`### ${group.name}`, '']
  const verdicts: Verdict[] = []
  const rows = rowsOf(results)
  if (rows.length > 0) {
    lines.push('| case | p50 ns | mean ns | B | clock reads; timers for 1,000 |', '| --- | ---: | ---: | ---: | --- |')
    for (const { name, p50, mean, bytes, counts } of rows) {
      lines.push(`| ${name} | ${figure(p50)} | ${figure(mean)} | ${figure(bytes)} | ${counts} |`)
    }
    lines.push('')
  }
  const ratios = group.ratios.flatMap((ratio) => {
    const value = ratioOf(ratio.of, ratio.to, results)
    return value === undefined ? [] : [{ ...ratio, value }]
  })
  if (ratios.length > 0) lines.push('| ratio | × | goal |', '| --- | ---: | --- |')
  for (const { of, to, value, goal, max } of ratios) {
    const what = `${of} : ${to.join(' + ')}`
    const wanted = max === undefined ? '' : `≤ ${max}`
    lines.push(`| ${what} | ${value.toFixed(2)} | ${goal === undefined ? '' : `${goal} ${wanted}`} |`)
    if (goal !== undefined && max !== undefined) {
      verdicts.push({ goal, what, value: `${value.toFixed(2)} ×`, wanted: `${wanted} ×`, isMet: value <= max })
    }
  }
  if (ratios.length > 0) lines.push('')
  const readings = readingsOf(results)
  lines.push(...matrixOf(readings), ...(group.remarks?.(readings) ?? []).flatMap((remark) => [remark, '']))
  const others = readings.filter(({ column }) => column === undefined)
  if (others.length > 0) lines.push('| reading | | goal |', '| --- | ---: | --- |')
  for (const reading of others) {
    const { name, value, unit, goal } = reading
    lines.push(`| ${name} | ${figure(value)} ${unit} | ${goal === undefined ? '' : `${goal} ${wantedOf(reading)}`} |`)
  }
  for (const reading of readings) {
    const { name, column, value, unit, goal, max, min } = reading
    if (goal === undefined || (max === undefined && min === undefined)) continue
    const what = column === undefined ? name : `${name}, ${column}`
    const isMet = value <= (max ?? value) && value >= (min ?? value)
    verdicts.push({ goal, what, value: `${figure(value)} ${unit}`.trim(), wanted: wantedOf(reading), isMet })
  }
  return { text: [...lines, ''].join('\n'), verdicts }
}

function wantedOf({ max, min, unit }: Reading): string {
  return (max !== undefined ? `≤ ${max} ${unit}` : min !== undefined ? `≥ ${min} ${unit}` : '').trim()
}

/** The table of those readings that are in columns; a case has a row, and a cell that nothing was read for is empty. */
function matrixOf(readings: readonly Reading[]): string[] {
  const cells = readings.filter(({ column }) => column !== undefined)
  if (cells.length === 0) return []
  const columns = [...new Set(cells.map(({ column }) => column))]
  const lines = [`| case | ${columns.join(' | ')} |`, `| --- |${columns.map(() => ' ---: |').join('')}`]
  for (const row of new Set(cells.map(({ name }) => name))) {
    const values = columns.map((heading) => {
      const cell = cells.find(({ name, column }) => name === row && column === heading)
      return cell === undefined ? '' : figure(cell.value)
    })
    lines.push(`| ${row} | ${values.join(' | ')} |`)
  }
  return [...lines, '']
}

/** What fails a run: counts that are exact, and readings that say they are hard. Never a time. */
export function faultsOf(results: readonly GroupResult[]): string[] {
  const counts = results.flatMap(({ measured }) =>
    measured.flatMap(({ name, faults }) => faults.map((fault) => `${name} ${fault}`)),
  )
  const bounds = readingsOf(results).flatMap(({ name, value, unit, max, min, isHard = false }) => {
    if (!isHard || (value <= (max ?? value) && value >= (min ?? value))) return []
    return [`${name} is ${figure(value)} ${unit}`]
  })
  return [...new Set([...counts, ...bounds])]
}

function rowsOf(results: readonly GroupResult[]): Row[] {
  const names = results[0]?.measured.map(({ name }) => name) ?? []
  return names.map((name) => {
    const all = results.flatMap(({ measured }) => measured.filter((each) => each.name === name))
    const timings: Timing[] = all.flatMap(({ rounds }) => rounds)
    const [first] = all
    const counted = first === undefined || first.clockReads === null
    return {
      name,
      p50: median(timings.map(({ p50 }) => p50)),
      mean: median(timings.map(({ mean }) => mean)),
      bytes: median(all.map(({ bytes }) => bytes)),
      counts: counted ? '' : `${figure(first?.clockReads ?? 0)}; ${figure(first?.timersPer1000 ?? 0)}`,
    }
  })
}

/** Taken within each round, then the median of the rounds of all processes. */
function ratioOf(of: string, to: readonly string[], results: readonly GroupResult[]): number | undefined {
  const ratios: number[] = []
  for (const { measured } of results) {
    const roundsOf = (name: string): readonly Timing[] => measured.find((each) => each.name === name)?.rounds ?? []
    for (const [round, { p50 }] of roundsOf(of).entries()) {
      const yardsticks = to.map((name) => roundsOf(name)[round]?.p50)
      const sum = yardsticks.reduce<number>((total, yardstick) => total + (yardstick ?? Number.NaN), 0)
      if (!Number.isNaN(sum)) ratios.push(p50 / sum)
    }
  }
  return ratios.length === 0 ? undefined : median(ratios)
}

function readingsOf(results: readonly GroupResult[]): Reading[] {
  const first = results[0]?.readings ?? []
  return first.map((reading) => {
    const values = results.flatMap(({ readings }) =>
      readings
        .filter((each) => each.name === reading.name && each.column === reading.column && each.unit === reading.unit)
        .map(({ value }) => value),
    )
    return { ...reading, value: median(values) }
  })
}

/** Three digits, or all before the point. */
export function figure(value: number): string {
  const size = Math.abs(value)
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2
  return value.toFixed(digits).replace(/\.0+$/, '')
}
