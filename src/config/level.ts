import { pointerStep } from '../json-pointer.ts'
import { idsOf } from './record-ids.ts'
import type { ObjectShape, RecordShape } from './shape.ts'

export interface Properties {
  [key: string]: unknown
}

/** An object of the candidate on the way from the root to where the walk is, and what is made of it. */
export interface Level {
  readonly parent: Level | null
  /** Its own key in `parent`. */
  readonly key: string
  readonly shape: ObjectShape | RecordShape
  readonly input: Readonly<Properties>
  readonly keys: readonly string[]
  nextKey: number
  pointer: string | null
  /** What the known configuration has in this place, if that has the same shape, and the keys of it. */
  readonly known: Readonly<Properties> | undefined
  readonly knownKeys: readonly string[]
  /** Members that are good so far. While there is no copy, they are that many first ones of what is known. */
  members: number
  /** Null: nothing is different so far. Has every setting that was given; where the value was wrong, it is `undefined`. */
  copy: Properties | null
}

const NO_KEYS: readonly string[] = []

export function levelOf(
  parent: Level | null,
  key: string,
  shape: Level['shape'],
  input: Readonly<Properties>,
  known: Readonly<Properties> | undefined,
): Level {
  const keys = Object.keys(input)
  const knownKeys = known === undefined ? NO_KEYS : shape.kind === 'record' ? idsOf(known) : Object.keys(known)
  return { parent, key, shape, input, keys, nextKey: 0, pointer: null, known, knownKeys, members: 0, copy: null }
}

/** What is known of a member, an own one: settings that `Object.prototype` was given are none. */
export function knownOf({ known, knownKeys, members }: Level, key: string): unknown {
  if (known === undefined) return undefined
  return knownKeys[members] === key || Object.hasOwn(known, key) ? known[key] : undefined
}

/** A member is good: judged, or known. */
export function put(level: Level, key: string, value: unknown): void {
  const { known, knownKeys, members } = level
  const isSame = level.copy === null && knownKeys[members] === key && known?.[key] === value
  if (!isSame) copyOf(level)[key] = value
  level.members += 1
}

/** The copy, from now on one; what came up until now was as it is known. */
export function copyOf(level: Level): Properties {
  if (level.copy !== null) return level.copy
  const { shape, known, knownKeys, members } = level
  // Without a prototype, `__proto__` is an id like any other (CFG-2).
  const copy: Properties = shape.kind === 'record' ? Object.create(null) : {}
  for (let index = 0; index < members; index += 1) {
    const key = knownKeys[index]
    if (key !== undefined) copy[key] = known?.[key]
  }
  level.copy = copy
  return copy
}

/** The same settings in the same order. */
export function isLike(copy: Readonly<Properties>, known: Readonly<Properties>, knownKeys: readonly string[]): boolean {
  const keys = Object.keys(copy)
  return keys.length === knownKeys.length && keys.every((key, at) => key === knownKeys[at] && copy[key] === known[key])
}

/** RFC 6901; kept, so that many issues of one object share its text. */
export function pointerOf(level: Level): string {
  level.pointer ??= level.parent === null ? '' : memberOf(level.parent, level.key)
  return level.pointer
}

export function memberOf(level: Level, key: string): string {
  if (level.parent === null) return '' // the document itself
  return pointerOf(level) + pointerStep(key)
}
