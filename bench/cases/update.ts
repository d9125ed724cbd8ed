import * as v from 'valibot'
import { AdmissionCore } from '../../src/admission-core.ts'
import { parseConfig, parseConfigSteps } from '../../src/config/parse.ts'
import { configSchema } from '../../src/config/schema.ts'
import type { Config, ConfigInput } from '../../src/config/types.ts'
import { Lifecycle } from '../../src/control/lifecycle.ts'
import { Publication } from '../../src/control/publication.ts'
import { Reporter } from '../../src/control/reporter.ts'
import { Retirement } from '../../src/control/retirement.ts'
import { prepareFirst } from '../../src/control/update.ts'
import { Kernel } from '../../src/kernel/kernel.ts'
import { compile } from '../../src/program/compile.ts'
import { difference } from '../../src/program/plan.ts'
import type { Program } from '../../src/program/program.ts'
import { atOnce } from '../../src/steps.ts'
import { type Contestant, type Group, median, type Reading, type Size, type Subject } from '../engine.ts'
import { nextTurn } from '../host.ts'
import { longestBlockMs } from '../longest-block.ts'
import { StillClock } from '../still-clock.ts'
import { counter } from './core.ts'
import { admitted } from './leases.ts'
import { CHANGED, manyRules } from './limits.ts'

/** The goals speak of so many. */
const GOAL_RULES = 10_000
const SIZES: { readonly [S in Size]: readonly number[] } = { quick: [10, 1000], full: [10, 1000, GOAL_RULES] }
const WORKSHOP = { keeper: { release(): void {}, closeBody(): void {} }, selectors: new Map() }

/** An operation is one document; what it makes is counted by a number that it must have. */
function each(name: string, make: () => () => number): Contestant {
  return {
    name,
    make(): Subject {
      const operate = make()
      return {
        run(n) {
          let count = 0
          for (let left = n; left > 0; left -= 1) count += operate()
          return count
        },
        expected: (n) => n,
      }
    },
  }
}

/** The steps of an update by turns between two documents that differ in ten limits. */
function steps(rules: number): readonly Contestant[] {
  const documents = [manyRules(rules), manyRules(rules, CHANGED)] as const
  const document = manyRules(rules)
  return [
    each(`unit.valibot@${rules}`, () => () => (v.parse(configSchema, document).contracts === undefined ? 0 : 1)),
    each(`update.parse.first@${rules}`, () => () => (parseConfig(document).contracts === undefined ? 0 : 1)),
    each(`update.parse@${rules}`, () => {
      const known = parseConfig(documents[1])
      return () => (parsedLike(document, known).contracts === undefined ? 0 : 1)
    }),
    each(`update.difference@${rules}`, () => {
      const before = parseConfig(documents[0])
      const after = parsedLike(documents[1], before)
      return () => (difference(before, after).plan.resized.length === CHANGED ? 1 : 0)
    }),
    each(`update.compile@${rules}`, () => {
      const { kernel, source } = enabled(documents[0])
      const config = parsedLike(documents[1], source.config)
      return () => {
        const { staging } = compile(config, source.generation + 1, { ...WORKSHOP, kernel }, source)
        return staging.limits.length === CHANGED ? 1 : 0
      }
    }),
    {
      name: `update.whole@${rules}`,
      make() {
        const core = new AdmissionCore({ clock: new StillClock(), config: documents[0] })
        const bound = core.route('/area-0', 'GET /area-0/thing-0')
        return {
          step: 2,
          async run(n) {
            let count = 0
            for (let left = n; left > 0; left -= 2) {
              for (const next of [documents[1], documents[0]]) {
                const { plan } = await core.update(next)
                if (plan.resized.length === CHANGED) count += 1
                admitted(bound.admit()).release()
              }
            }
            return count
          },
          expected: (n) => n,
        }
      },
    },
  ]
}

/** As an update reads it: what did not change is taken from the configuration in force. */
function parsedLike(document: unknown, known: Config): Config {
  return atOnce(parseConfigSteps(document, {}, known))
}

function enabled(document: unknown): { kernel: Kernel; publication: Publication; source: Program } {
  const kernel = new Kernel()
  const publication = new Publication(new Lifecycle(), kernel, new Retirement())
  const prepared = prepareFirst(document, 1, { ...WORKSHOP, kernel })
  publication.enable(prepared)
  return { kernel, publication, source: prepared.program }
}

/**
 * What an update may do to a large configuration, there and back. The goals are about the first: of what is all new, the
 * collector moves some megabytes in one block, whatever the steps are.
 */
const CHANGES: { readonly [name: string]: (rules: number) => readonly [ConfigInput, ConfigInput] } = {
  '': (rules) => [manyRules(rules), manyRules(rules, CHANGED)],
  '.all': (rules) => [manyRules(rules), manyRules(rules, rules)],
  '.new': (rules) => [manyRules(0), manyRules(rules)],
}

/** What the step takes that publishes, microseconds, and the longest that the event loop stands still, milliseconds; both in C. */
async function commitsAndBlocks(rules: number, size: Size): Promise<readonly Reading[]> {
  const counterNs = await counterTime()
  const readings: Reading[] = []
  for (const [name, documentsOf] of Object.entries(CHANGES)) {
    const documents = documentsOf(rules)
    const updates = size === 'full' ? 60 : 4
    const commits = (await commitTimes(documents, updates)).map(median)
    const blocks = await blockTimes(documents, updates)
    const [thereUs = 0, backUs = 0] = commits
    const block = median(blocks)
    const [commitGoal, blockGoal] =
      name === '' && rules === GOAL_RULES
        ? [
            { goal: 'P20', max: 50 },
            { goal: 'P21', max: 5 },
          ]
        : [{}, {}]
    readings.push(
      { name: `update.commit${name}@${rules}`, value: thereUs, unit: 'µs', ...commitGoal },
      { name: `update.commit${name}@${rules}`, value: (thereUs * 1000) / counterNs, unit: 'C' },
      { name: `update.commit${name}.back@${rules}`, value: backUs, unit: 'µs' },
      { name: `update.block${name}@${rules}`, value: block, unit: 'ms', ...blockGoal },
      { name: `update.block${name}@${rules}`, value: (block * 1e6) / counterNs, unit: 'C' },
      { name: `update.block${name}.worst@${rules}`, value: Math.max(...blocks), unit: 'ms' },
    )
  }
  return readings
}

/** Of each way, microseconds: with a bound route for each rule, all of them called before, and nobody waiting. */
async function commitTimes(
  documents: readonly [ConfigInput, ConfigInput],
  updates: number,
): Promise<readonly (readonly number[])[]> {
  const core = new AdmissionCore({ clock: new StillClock(), config: documents[0] })
  const routes = Object.entries({ ...documents[0].contracts, ...documents[1].contracts }).flatMap(([contract, its]) =>
    Object.keys(its?.methods ?? {}).map((method) => core.route(contract, method)),
  )
  const timesUs: readonly [number[], number[]] = [[], []]
  // All that an update does in one step is done within this.
  const { during } = Reporter.prototype
  let isBack = false
  const timed = function (this: Reporter, ...given: Parameters<typeof during>): unknown {
    const startMs = performance.now()
    const result: unknown = Reflect.apply(during, this, given)
    timesUs[isBack ? 1 : 0].push((performance.now() - startMs) * 1000)
    return result
  }
  Object.defineProperty(Reporter.prototype, 'during', { value: timed })
  try {
    for (let update = 0; update < updates; update += 1) {
      for (const route of routes) admitted(route.admit()).release()
      isBack = update % 2 === 1
      await core.update(documents[isBack ? 0 : 1])
    }
  } finally {
    Object.defineProperty(Reporter.prototype, 'during', { value: during })
  }
  return timesUs
}

/** The longest block of each update, milliseconds. */
async function blockTimes(documents: readonly [ConfigInput, ConfigInput], updates: number): Promise<number[]> {
  const core = new AdmissionCore({ clock: new StillClock(), config: documents[0] })
  const blocksMs: number[] = []
  for (let update = 0; update < updates; update += 1) {
    await nextTurn()
    blocksMs.push(await longestBlockMs(() => core.update(documents[update % 2 === 1 ? 0 : 1])))
  }
  return blocksMs
}

async function counterTime(): Promise<number> {
  const { run } = await counter.make()
  await run(1e6)
  const startMs = performance.now()
  await run(1e6)
  return performance.now() - startMs // milliseconds for a million are nanoseconds for one
}

export const updateGroups: readonly Group[] = SIZES.full.map((rules) => ({
  name: `update@${rules}`,
  contestants: (size) => (SIZES[size].includes(rules) ? steps(rules) : []),
  ratios: [
    {
      of: `update.whole@${rules}`,
      to: [`unit.valibot@${rules}`],
      ...(rules === GOAL_RULES ? { goal: 'P21', max: 1.5 } : {}),
    },
    { of: `update.parse.first@${rules}`, to: [`unit.valibot@${rules}`] },
    { of: `update.parse@${rules}`, to: [`unit.valibot@${rules}`] },
    { of: `update.difference@${rules}`, to: [`unit.valibot@${rules}`] },
    { of: `update.compile@${rules}`, to: [`unit.valibot@${rules}`] },
  ],
  probe: async (size) => (SIZES[size].includes(rules) ? await commitsAndBlocks(rules, size) : []),
}))
