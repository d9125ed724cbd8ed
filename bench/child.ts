/** Measures the groups named by the arguments, after the size, and prints each as one line of JSON. */

import process from 'node:process'
import { measureAll, type Size } from './engine.ts'
import { GROUPS } from './groups.ts'
import type { GroupResult } from './report.ts'

const [, , size, ...names] = process.argv
const isSize = (text: string | undefined): text is Size => text === 'quick' || text === 'full'
if (!isSize(size)) throw new Error(`Size must be quick or full, not ${size}`)

for (const group of GROUPS) {
  if (!names.includes(group.name)) continue
  const measured = await measureAll(group.contestants(size), size)
  const readings = (await group.probe?.(size)) ?? []
  const result: GroupResult = { name: group.name, measured, readings }
  console.log(JSON.stringify(result))
}
process.exit(0)
