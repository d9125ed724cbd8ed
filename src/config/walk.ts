import type * as v from 'valibot'
import { AdmissionConfigError, type ConfigIssue } from '../errors.ts'
import { copyOf, isLike, knownOf, type Level, levelOf, memberOf, type Properties, pointerOf, put } from './level.ts'
import { keepIds } from './record-ids.ts'
import { configSchema } from './schema.ts'
import { type Bounds, type ObjectShape, type Shape, shapeOf, type ValueShape } from './shape.ts'
import { show } from './show.ts'
import type { Config } from './types.ts'

const ROOT = 'config'
const CONFIG = shapeOf(configSchema)
const ROOT_SHAPE: ObjectShape = {
  kind: 'object',
  settings: new Map([[ROOT, CONFIG]]),
  required: [[ROOT, CONFIG]],
  defaults: [],
  checks: [],
}
const FIRST_PROBLEM = { abortPipeEarly: true }
const UNREADABLE = 'cannot be read: reading it throws'

/**
 * Copies a candidate along the shape of a configuration, so that neither the candidate's depth nor its cycles matter.
 * The levels are a list of its own and not the call stack, so that it can pause after any property.
 *
 * A known configuration, one that was made with the same selectors, saves most of that where the candidate says the
 * same: what it has was judged, and an object of it that would come out equal is taken instead of a copy, being frozen.
 * So equal parts of two configurations are one object, which whoever compares them can count on for speed.
 */
export class Walk {
  readonly #selectors: { has(name: string): boolean } | undefined
  readonly #issues: ConfigIssue[]
  #level: Level | null
  #left: number // properties to visit before a pause
  #made: unknown

  constructor(candidate: unknown, selectors: { has(name: string): boolean } | undefined, known: Config | undefined) {
    this.#selectors = selectors
    this.#issues = []
    // The document is the only member of a level above it, and so no special case anywhere but in pointers.
    this.#level = levelOf(null, '', ROOT_SHAPE, { [ROOT]: candidate }, known && { [ROOT]: known })
    this.#left = 0
    this.#made = undefined
  }

  /** Visits that many properties, or fewer where it copies: that is as much work again. Says whether any are left. */
  visit(properties: number): boolean {
    this.#left = properties
    for (; this.#left > 0 && this.#level !== null; this.#left -= 1) {
      const level = this.#level
      const key = level.keys[level.nextKey]
      level.nextKey += 1
      if (key === undefined) this.#close(level)
      else this.#property(level, key)
    }
    return this.#level !== null
  }

  /** @throws {AdmissionConfigError} when there was any issue. The walk is over. */
  result(): Config {
    if (isFaultless(this.#made, this.#issues)) return this.#made
    throw new AdmissionConfigError(this.#issues)
  }

  #property(level: Level, key: string): void {
    const { shape, input } = level
    const known = knownOf(level, key)
    if (shape.kind === 'record' && known === undefined && !this.#id(level, key, shape.id)) return
    const its = shape.kind === 'record' ? shape.value : shape.settings.get(key)
    if (its === undefined) {
      this.#report(level, key, `is not a setting here: ${show(key)}; known are ${settingsOf(shape)}`)
      return
    }
    let value: unknown
    try {
      value = input[key]
    } catch {
      this.#fail(level, key, UNREADABLE)
      return
    }
    if (value === undefined) return
    if (value === known) put(level, key, known)
    else this.#copy(level, key, its, value, known)
  }

  /** Whether it is a good id. What is under a bad one stays unread: each pointer there would repeat an endless id. */
  #id(level: Level, id: string, shape: ValueShape): boolean {
    const message = faultOf(shape, id)
    if (message !== null) this.#fail(level, id, message)
    else if (shape.isSelectorName) this.#selector(level, id, id)
    return message === null
  }

  #copy(level: Level, key: string, shape: Shape, value: unknown, known: unknown): void {
    if (shape.kind !== 'value') {
      this.#open(level, key, shape, value, known)
      return
    }
    const message = faultOf(shape, value)
    if (message !== null) {
      this.#fail(level, key, message)
      return
    }
    put(level, key, value === 0 ? 0 : value) // JSON has -0, no limit needs it
    if (shape.isSelectorName && typeof value === 'string') this.#selector(level, key, value)
  }

  #selector(level: Level, key: string, name: string): void {
    if (this.#selectors === undefined || this.#selectors.has(name)) return
    this.#report(level, key, `names no registered selector: ${show(name)}`)
  }

  #open(parent: Level, key: string, shape: Exclude<Shape, ValueShape>, value: unknown, known: unknown): void {
    try {
      if (!isPlain(value)) {
        this.#fail(parent, key, `must be a plain object, got ${show(value)}`)
        return
      }
      let its: Level['shape']
      let like = known
      if (shape.kind === 'variant') {
        const option = value[shape.by]
        its = shape.options.get(option) ?? shape.otherwise
        if (!isObject(known) || known[shape.by] !== option) like = undefined
      } else its = shape
      this.#level = levelOf(parent, key, its, value, isObject(like) ? like : undefined)
    } catch {
      this.#fail(parent, key, UNREADABLE)
    }
  }

  #close(level: Level): void {
    const { parent, known, knownKeys } = level
    const isSame = level.copy === null && known !== undefined && level.members === knownKeys.length
    const made = isSame ? known : this.#finish(level)
    this.#level = parent
    if (parent === null) this.#made = made[ROOT]
    else put(parent, level.key, made)
  }

  #finish(level: Level): Readonly<Properties> {
    const { shape, known, knownKeys } = level
    const copy = copyOf(level)
    this.#left -= level.members
    if (shape.kind === 'object') {
      for (const [setting, its] of shape.required) {
        if (!Object.hasOwn(copy, setting)) this.#copy(level, setting, its, undefined, undefined)
      }
      for (const [setting, value] of shape.defaults) if (!Object.hasOwn(copy, setting)) copy[setting] = value
    }
    for (const check of shape.checks) if (!isMet(check, level.keys.length)) this.#check(level, copy, check)
    // Only what was filled in can have made it the same again.
    const isFilled = shape.kind === 'object' && shape.defaults.length > 0
    if (isFilled && known !== undefined && isLike(copy, known, knownKeys)) return known
    if (shape.kind === 'record') keepIds(copy, level.members === level.keys.length ? level.keys : Object.keys(copy))
    return Object.freeze(copy)
  }

  #check(level: Level, copy: Properties, check: v.GenericValidation): void {
    const { issues } = check['~run']({ typed: true, value: copy }, FIRST_PROBLEM)
    for (const { path, message } of issues ?? []) {
      const member = path?.[0].key
      if (typeof member === 'string') this.#report(level, member, message)
      else this.#issues.push({ pointer: pointerOf(level), message })
    }
  }

  #fail(level: Level, key: string, message: string): void {
    copyOf(level)[key] = undefined
    this.#report(level, key, message)
  }

  #report(level: Level, key: string, message: string): void {
    this.#issues.push({ pointer: memberOf(level, key), message })
  }
}

function settingsOf(shape: Level['shape']): string {
  return shape.kind === 'object' ? [...shape.settings.keys()].join(', ') : ''
}

/** What is wrong with a scalar; null: nothing. None of the schemas makes another value of it. */
function faultOf({ schema, bounds }: ValueShape, value: unknown): string | null {
  if (bounds !== null && isWithin(bounds, value)) return null
  try {
    return schema['~run']({ value }, FIRST_PROBLEM).issues?.[0].message ?? null
  } catch {
    return UNREADABLE // an object came instead, and threw when valibot looked at it to name it
  }
}

/** Is there no need to ask? To count its entries, valibot would have the engine sort them. */
function isMet(check: v.GenericValidation, count: number): boolean {
  return (
    check.type === 'max_entries' &&
    'requirement' in check &&
    typeof check.requirement === 'number' &&
    count <= check.requirement
  )
}

function isWithin({ of, least, most }: Bounds, value: unknown): boolean {
  const measure = of === 'number' ? value : typeof value === 'string' ? value.length : undefined
  return typeof measure === 'number' && measure >= least && measure <= most && Number.isInteger(measure)
}

function isObject(value: unknown): value is Readonly<Properties> {
  return typeof value === 'object' && value !== null
}

/** From a literal, `JSON.parse`, `structuredClone` or a module, in any realm; not an array, not of any class. */
function isPlain(value: unknown): value is Readonly<Properties> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null
}

/** A walk without an issue has copied every part of `configSchema`, and so made what that produces. */
function isFaultless(made: unknown, issues: readonly ConfigIssue[]): made is Config {
  return typeof made === 'object' && issues.length === 0
}
