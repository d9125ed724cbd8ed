/**
 * The benchmark: `npm run bench`, `bench:bun`, `bench:deno`; arguments after `--`:
 *
 *   --quick          every case at tiny size; fails if one is broken or an exact count is exceeded, never for a time
 *   --only <text>    only groups whose name contains the text
 *   --processes <n>  how many processes measure each group, by turns; default 3
 */

import { spawn } from 'node:child_process'
import { cpus } from 'node:os'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Group } from './engine.ts'
import { GROUPS } from './groups.ts'
import { argumentsFor, runtime } from './host.ts'
import { faultsOf, type GroupResult, reportGroup, type Verdict } from './report.ts'

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    processes: { type: 'string' },
  },
})
const size = values.quick ? 'quick' : 'full'
const processes = Number(values.processes ?? (values.quick ? 1 : 3))
const groups = GROUPS.filter(({ name }) => name.includes(values.only))

console.log(
  `# ${runtime} ${versionOf()}, ${process.arch}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, ${size}\n`,
)
const results = new Map<Group, GroupResult[]>(groups.map((group) => [group, []]))
const broken: string[] = []
// Each group in a process of its own, but at tiny size in two: starting one takes longer than what it does.
const isCore = ({ name }: Group): boolean => name.startsWith('core.')
const batches = values.quick
  ? [groups.filter(isCore), groups.filter((group) => !isCore(group))].filter(({ length }) => length > 0)
  : groups.map((group) => [group])
for (let round = 0; round < processes; round += 1) {
  // By turns, so that a bad minute of the machine does not fall on all measurements of one group.
  for (const batch of batches) {
    const names = batch.filter((group) => round < (group.processes ?? processes)).map(({ name }) => name)
    if (names.length === 0) continue
    if (!values.quick) process.stderr.write(`${names.join(' ')} ${round + 1}/${processes}\n`)
    try {
      for (const result of await measured(names)) {
        results.get(groups.find(({ name }) => name === result.name) ?? neverAsked(result.name))?.push(result)
      }
    } catch (error) {
      broken.push(`${names.join(' ')}: ${error instanceof Error ? error.message : error}`)
    }
  }
}
const verdicts: Verdict[] = []
for (const [group, all] of results) {
  if (all.every((result) => result.measured.length === 0 && result.readings.length === 0)) continue
  const report = reportGroup(group, all)
  verdicts.push(...report.verdicts)
  console.log(report.text)
}
if (values.quick)
  console.log('Times of a quick run say nothing: it only shows that every case works, and checks exact counts.\n')
console.log('### Goals\n\n| goal | what | is | wanted | met |\n| --- | --- | ---: | ---: | --- |')
for (const { goal, what, value, wanted, isMet } of verdicts) {
  console.log(`| ${goal} | ${what} | ${value} | ${wanted} | ${isMet ? 'yes' : 'no'} |`)
}
const faults = [...broken, ...faultsOf([...results.values()].flat())]
for (const fault of faults) console.error(`Broken: ${fault}`)
process.exit(faults.length === 0 ? 0 : 1)

/** Runs groups in a process of their own. */
function measured(names: readonly string[]): Promise<GroupResult[]> {
  const child = fileURLToPath(new URL('child.js', import.meta.url))
  const running = spawn(process.execPath, [...argumentsFor(child), size, ...names], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output: string[] = []
  const errors: string[] = []
  running.stdout.on('data', (chunk) => output.push(String(chunk)))
  running.stderr.on('data', (chunk) => errors.push(String(chunk)))
  return new Promise((resolve, reject) => {
    running.on('error', reject)
    running.on('close', (code) => {
      if (code !== 0) reject(new Error(errors.join('').trim() || `ends with ${code}`))
      else {
        const lines = output.join('').split('\n')
        resolve(lines.filter((line) => line.startsWith('{')).map((line): GroupResult => JSON.parse(line)))
      }
    })
  })
}

function neverAsked(name: string): never {
  throw new Error(`Measured ${name}, which was not asked for`)
}

function versionOf(): string {
  return process.versions[runtime] ?? ''
}
