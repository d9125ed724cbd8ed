import { parseConfig, parseConfigSteps } from '../config/parse.ts'
import type { Config } from '../config/types.ts'
import { UnsupportedTransitionError } from '../errors.ts'
import type { Removed } from '../kernel/kernel.ts'
import { type Compiled, compile, compileSteps, type Workshop } from '../program/compile.ts'
import { type Difference, difference, differenceSteps, type Plan } from '../program/plan.ts'
import type { Program } from '../program/program.ts'
import { atOnce, type Steps } from '../steps.ts'

/** A candidate, ready to be published in one step. Dropping it is all that undoing it takes (PUB-5). */
export interface Prepared extends Compiled {
  readonly difference: Difference
}

const EMPTY: Config = Object.freeze({})
const NOTHING: Removed = { concurrencies: [], deliveries: [] }

/** @throws {AdmissionConfigError} with every issue (CFG-1). */
export function prepareFirst(candidate: unknown, generation: number, workshop: Workshop): Prepared {
  const config = parseConfig(candidate, { selectors: workshop.selectors })
  const plan = enabling(config)
  return { ...compile(config, generation, workshop), difference: { plan, removed: NOTHING } }
}

/**
 * parse → plan → compile against the source, in steps of a millisecond or two; a small candidate takes one. Nothing
 * shared has changed when it returns or throws. What the candidate says like the source is the source's own: parsing
 * takes over its objects, so that planning and compiling go only where something changed.
 *
 * Between two steps calls come and go, and states that nobody names or uses are dropped: publishing puts back the ones
 * that the candidate names, and they are as new (STA-3). Whatever else names or resizes a state is a publication, and
 * after one the source is no longer current, so the candidate is dropped (PUB-4).
 *
 * @throws {AdmissionConfigError} with every issue (CFG-1).
 * @throws {UnsupportedTransitionError} with every path that an update cannot change (PUB-9).
 */
export function* prepareNext(candidate: unknown, source: Program, workshop: Workshop): Steps<Prepared> {
  const config = yield* parseConfigSteps(candidate, { selectors: workshop.selectors }, source.config)
  const changes = yield* differenceSteps(source.config, config)
  if (changes.plan.refusals.length > 0) throw new UnsupportedTransitionError(changes.plan.refusals)
  const { program, staging } = yield* compileSteps(config, source.generation + 1, workshop, source)
  return { program, staging, difference: changes }
}

/** What publishing a candidate would do, refusals being data (PUB-11). `source` null: what enabling it would do. */
export function planOf(candidate: unknown, source: Program | null, workshop: Workshop): Plan {
  const config = atOnce(parseConfigSteps(candidate, { selectors: workshop.selectors }, source?.config))
  return source === null ? enabling(config) : difference(source.config, config).plan
}

/** Enabling starts from nothing, so every rate and partition is welcome. */
function enabling(config: Config): Plan {
  return { ...difference(EMPTY, config).plan, refusals: [] }
}
