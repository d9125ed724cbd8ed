import type { AdmissionCore } from '../admission-core.ts'

// RFC 9110, 8.8.3: a comma may stand within the quotes.
const ENTITY_TAG = /^[ \t]*(W\/)?("[\x21\x23-\x7e\x80-\xff]*")[ \t]*(?:,|$)/

/**
 * Does `If-Match` let a request for a resource with this strong tag go on (ADX-7)? A list or `*`, compared strongly: a
 * weak tag never matches. A field that is not well formed matches nothing.
 */
export function ifMatches(field: string, current: string): boolean {
  if (field.trim() === '*') return true
  let matched = false
  for (let rest = field; rest.trim() !== ''; ) {
    const tag = ENTITY_TAG.exec(rest)
    if (tag === null) {
      const empty = /^[ \t]*,/.exec(rest) // recipients accept empty list members
      if (empty === null) return false
      rest = rest.slice(empty[0].length)
      continue
    }
    if (tag[1] === undefined && tag[2] === current) matched = true
    rest = rest.slice(tag[0].length)
  }
  return matched
}

/**
 * The strong tag of the configuration resource: process, generation and state (ADX-3).
 *
 * The process is named by 64 random bits, drawn when the first tag is asked for and not before (RUN-1), so a tag from
 * before a restart is stale. Draining is no part of it.
 */
export class EntityTags {
  readonly #core: AdmissionCore
  #process: string | undefined

  constructor(core: AdmissionCore) {
    this.#core = core
    this.#process = undefined
  }

  current(): string {
    this.#process ??= Array.from(crypto.getRandomValues(new Uint32Array(2)), (word) =>
      word.toString(36).padStart(7, '0'),
    ).join('')
    return `"${this.#process}-${this.#core.generation}-${this.#core.state}"`
  }
}
