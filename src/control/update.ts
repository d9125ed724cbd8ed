import { parseConfig } from '../config/parse.ts'
import type { Config } from '../config/types.ts'
import { UnsupportedTransitionError } from '../errors.ts'
import type { Kernel, Removed } from '../kernel/kernel.ts'
import { type Compiled, compile } from '../program/compile.ts'
import { type Difference, difference, type Plan } from '../program/plan.ts'
import type { CallKeeper, Program } from '../program/program.ts'

/** A candidate, ready to be published in one step. Dropping it is all that undoing it takes (PUB-5). */
export interface Prepared extends Compiled {
  readonly difference: Difference
}

/** What preparing needs to know; it changes none of it. */
export interface Workshop {
  readonly kernel: Kernel
  readonly keeper: CallKeeper
  readonly selectors: { has(name: string): boolean }
}

const EMPTY: Config = Object.freeze({})
const NOTHING: Removed = { concurrencies: [], deliveries: [] }

/** @throws {AdmissionConfigError} with every issue (CFG-1). */
export function prepareFirst(candidate: unknown, generation: number, workshop: Workshop): Prepared {
  const config = parseConfig(candidate, { selectors: workshop.selectors })
  const plan = enabling(config)
  return { ...compile(config, generation, workshop.kernel, workshop.keeper), difference: { plan, removed: NOTHING } }
}

/**
 * parse → plan → compile against the source; nothing shared has changed when it returns or throws.
 *
 * @throws {AdmissionConfigError} with every issue (CFG-1).
 * @throws {UnsupportedTransitionError} with every path that an update cannot change (PUB-9).
 */
export function prepareNext(candidate: unknown, source: Program, workshop: Workshop): Prepared {
  const config = parseConfig(candidate, { selectors: workshop.selectors })
  const changes = difference(source.config, config)
  if (changes.plan.refusals.length > 0) throw new UnsupportedTransitionError(changes.plan.refusals)
  return { ...compile(config, source.generation + 1, workshop.kernel, workshop.keeper), difference: changes }
}

/** What publishing a candidate would do, refusals being data (PUB-11). `source` null: what enabling it would do. */
export function planOf(candidate: unknown, source: Program | null, workshop: Workshop): Plan {
  const config = parseConfig(candidate, { selectors: workshop.selectors })
  return source === null ? enabling(config) : difference(source.config, config).plan
}

/** Enabling starts from nothing, so every rate and partition is welcome. */
function enabling(config: Config): Plan {
  return { ...difference(EMPTY, config).plan, refusals: [] }
}
