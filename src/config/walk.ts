import * as v from 'valibot'
import { AdmissionConfigError, type ConfigIssue } from '../errors.ts'
import { configSchema } from './schema.ts'
import { type ObjectShape, type RecordShape, type Shape, shapeOf, type ValueShape } from './shape.ts'
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

interface Properties {
  [key: string]: unknown
}

/** An object of the candidate on the way from the root to where the walk is, and the copy that is made of it. */
interface Level {
  readonly parent: Level | null
  /** Its own key in `parent`. */
  readonly key: string
  readonly shape: ObjectShape | RecordShape
  readonly input: Readonly<Properties>
  readonly keys: readonly string[]
  nextKey: number
  pointer: string | null
  /** Has every known key that was given; where the value was wrong, it is `undefined`. */
  readonly copy: Properties
}

/**
 * Copies a candidate along the shape of a configuration, so that neither the candidate's depth nor its cycles matter.
 * The levels are a list of its own and not the call stack, so that it can pause after any property.
 */
export class Walk {
  readonly #selectors: { has(name: string): boolean } | undefined
  readonly #issues: ConfigIssue[]
  readonly #root: Level
  #level: Level | null

  constructor(candidate: unknown, selectors: { has(name: string): boolean } | undefined) {
    this.#selectors = selectors
    this.#issues = []
    // The document is the only member of a level above it, and so no special case anywhere but in pointers.
    this.#root = {
      parent: null,
      key: '',
      shape: ROOT_SHAPE,
      input: { [ROOT]: candidate },
      keys: [ROOT],
      nextKey: 0,
      pointer: null,
      copy: {},
    }
    this.#level = this.#root
  }

  /** Visits about that many properties; says whether any are left. */
  visit(properties: number): boolean {
    for (let left = properties; left > 0 && this.#level !== null; left -= 1) {
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
    const config = this.#root.copy[ROOT]
    if (isFaultless(config, this.#issues)) return config
    throw new AdmissionConfigError(this.#issues)
  }

  #property(level: Level, key: string): void {
    const { shape, input } = level
    if (shape.kind === 'record' && !this.#id(level, key, shape.id)) return
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
    if (value !== undefined) this.#copy(level, key, its, value)
  }

  /** Whether it is a good id. What is under a bad one stays unread: each pointer there would repeat an endless id. */
  #id(level: Level, id: string, shape: ValueShape): boolean {
    const parsed = v.safeParse(shape.schema, id, FIRST_PROBLEM)
    if (!parsed.success) this.#fail(level, id, parsed.issues[0].message)
    else if (shape.isSelectorName) this.#selector(level, id, id)
    return parsed.success
  }

  #copy(level: Level, key: string, shape: Shape, value: unknown): void {
    if (shape.kind !== 'value') {
      this.#open(level, key, shape, value)
      return
    }
    const parsed = judge(shape.schema, value)
    if (parsed === null) {
      this.#fail(level, key, UNREADABLE)
    } else if (!parsed.success) {
      this.#fail(level, key, parsed.issues[0].message)
    } else {
      const { output } = parsed
      level.copy[key] = output === 0 ? 0 : output // JSON has -0, no limit needs it
      if (shape.isSelectorName && typeof output === 'string') this.#selector(level, key, output)
    }
  }

  #selector(level: Level, key: string, name: string): void {
    if (this.#selectors === undefined || this.#selectors.has(name)) return
    this.#report(level, key, `names no registered selector: ${show(name)}`)
  }

  #open(parent: Level, key: string, shape: Exclude<Shape, ValueShape>, value: unknown): void {
    let its: Level['shape']
    let keys: readonly string[]
    try {
      if (!isPlain(value)) {
        this.#fail(parent, key, `must be a plain object, got ${show(value)}`)
        return
      }
      its = shape.kind === 'variant' ? (shape.options.get(value[shape.by]) ?? shape.otherwise) : shape
      keys = Object.keys(value)
    } catch {
      this.#fail(parent, key, UNREADABLE)
      return
    }
    // Without a prototype, `__proto__` is an id like any other (CFG-2).
    const copy: Properties = its.kind === 'record' ? Object.create(null) : {}
    parent.copy[key] = copy
    this.#level = { parent, key, shape: its, input: value, keys, nextKey: 0, pointer: null, copy }
  }

  #close(level: Level): void {
    const { shape, copy, parent } = level
    if (shape.kind === 'object') {
      for (const [setting, its] of shape.required) {
        if (!Object.hasOwn(copy, setting)) this.#copy(level, setting, its, undefined)
      }
      for (const [setting, value] of shape.defaults) if (!Object.hasOwn(copy, setting)) copy[setting] = value
    }
    for (const check of shape.checks) this.#check(level, check)
    Object.freeze(copy)
    this.#level = parent
  }

  #check(level: Level, check: v.GenericValidation): void {
    const { issues } = check['~run']({ typed: true, value: level.copy }, FIRST_PROBLEM)
    for (const { path, message } of issues ?? []) {
      const member = path?.[0].key
      if (typeof member === 'string') this.#report(level, member, message)
      else this.#issues.push({ pointer: pointerOf(level), message })
    }
  }

  #fail(level: Level, key: string, message: string): void {
    level.copy[key] = undefined
    this.#report(level, key, message)
  }

  #report(level: Level, key: string, message: string): void {
    this.#issues.push({ pointer: memberOf(level, key), message })
  }
}

function settingsOf(shape: Level['shape']): string {
  return shape.kind === 'object' ? [...shape.settings.keys()].join(', ') : ''
}

/** RFC 6901; kept, so that many issues of one object share its text. */
function pointerOf(level: Level): string {
  level.pointer ??= level.parent === null ? '' : memberOf(level.parent, level.key)
  return level.pointer
}

function memberOf(level: Level, key: string): string {
  if (level.parent === null) return '' // the document itself
  return `${pointerOf(level)}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** `null`: an object came instead, and threw when valibot looked at it to name it. */
function judge(schema: v.GenericSchema, value: unknown): v.SafeParseResult<v.GenericSchema> | null {
  try {
    return v.safeParse(schema, value, FIRST_PROBLEM)
  } catch {
    return null
  }
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
