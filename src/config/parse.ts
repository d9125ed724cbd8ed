import { atOnce, type Steps } from '../steps.ts'
import type { Config } from './types.ts'
import { Walk } from './walk.ts'

export interface ParseOptions {
  /** The names that key selectors are registered under; absent: names are not checked (CFG-2). */
  readonly selectors?: { has(name: string): boolean }
}

const PROPERTIES_PER_STEP = 20_480 // one to two milliseconds

/**
 * Reads a candidate into a private, deep-frozen copy with every default filled in, which parses to an equal one again.
 *
 * As in JSON, own enumerable properties with string keys count, and `undefined` is as good as absent. Each is read
 * once. Objects must be plain; one that throws when it is read is an issue. Issues come in document order, where what
 * concerns an object as a whole, like a missing setting, follows its members. About half a microsecond for each scope, all at once.
 *
 * @throws {AdmissionConfigError} with every issue (CFG-1).
 */
export function parseConfig(candidate: unknown, options: ParseOptions = {}): Config {
  return atOnce(parseConfigSteps(candidate, options))
}

/**
 * {@link parseConfig} that yields after every few thousand scopes, so that a large candidate need not hold up the
 * event loop. A candidate that changes between two steps is read partly before and partly after; its copy is valid anyway.
 *
 * What the candidate says like a known configuration, made with the same selectors, is that one's: the same objects.
 */
export function* parseConfigSteps(candidate: unknown, options: ParseOptions = {}, known?: Config): Steps<Config> {
  const walk = new Walk(candidate, options.selectors, known)
  while (walk.visit(PROPERTIES_PER_STEP)) yield
  return walk.result()
}
