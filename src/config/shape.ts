import * as v from 'valibot'
import { assert } from '../assert.ts'
import { oneOf, selectorNameSchema } from './schema.ts'

/** A valibot schema, taken apart for `walk.ts`; made once for each schema. */
export type Shape = ValueShape | ObjectShape | RecordShape | VariantShape

/** A scalar: valibot judges it whole, but for what is plainly within bounds. */
export interface ValueShape {
  readonly kind: 'value'
  readonly schema: v.GenericSchema
  readonly bounds: Bounds | null
  readonly isSelectorName: boolean
}

/** What the schema says and no more: a whole number, or the length of a string, from `least` to `most`. */
export interface Bounds {
  readonly of: 'number' | 'string'
  readonly least: number
  readonly most: number
}

/** Known settings and no others. */
export interface ObjectShape {
  readonly kind: 'object'
  readonly settings: ReadonlyMap<string, Shape>
  readonly required: readonly (readonly [setting: string, shape: Shape])[]
  readonly defaults: readonly (readonly [setting: string, value: unknown])[]
  readonly checks: readonly v.GenericValidation[]
}

/** Any ids, all with values of one shape. */
export interface RecordShape {
  readonly kind: 'record'
  readonly id: ValueShape
  readonly value: Shape
  readonly checks: readonly v.GenericValidation[]
}

/** Which object it is, its setting `by` says; when that one is wrong, `otherwise` knows the settings of all of them. */
export interface VariantShape {
  readonly kind: 'variant'
  readonly by: string
  readonly options: ReadonlyMap<unknown, ObjectShape>
  readonly otherwise: ObjectShape
}

/** The schemas that the walk takes apart; any other is a scalar. */
type Composite =
  | v.StrictObjectSchema<v.ObjectEntries, undefined>
  | v.RecordSchema<v.GenericSchema<string>, v.GenericSchema, undefined>
  | v.VariantSchema<string, v.VariantOptions<string>, undefined>
  | v.ExactOptionalSchema<v.GenericSchema, unknown>

export function shapeOf(schema: Composite | v.GenericSchema): Shape {
  if (v.isOfType('exact_optional', schema)) return shapeOf(schema.wrapped)
  if (v.isOfType('strict_object', schema)) return objectOf(schema.entries, checksOf(schema))
  if (v.isOfType('record', schema)) {
    return { kind: 'record', id: scalarOf(schema.key), value: shapeOf(schema.value), checks: checksOf(schema) }
  }
  if (v.isOfType('variant', schema)) return variantOf(schema.key, schema.options)
  return scalarOf(schema)
}

function scalarOf(schema: v.GenericSchema): ValueShape {
  return { kind: 'value', schema, bounds: boundsOf(schema), isSelectorName: schema === selectorNameSchema }
}

/** Null where a schema says anything else, or more. */
function boundsOf(schema: v.GenericSchema): Bounds | null {
  if (schema.type !== 'number' && schema.type !== 'string') return null
  let [least, most] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
  let isWhole = schema.type === 'string'
  for (const check of checksOf(schema)) {
    const { type } = check
    const requirement: unknown = 'requirement' in check ? check.requirement : undefined
    if (type === 'integer') isWhole = true
    else if (typeof requirement !== 'number') return null
    else if (type === 'min_value' || type === 'min_length') least = Math.max(least, requirement)
    else if (type === 'max_value' || type === 'max_length') most = Math.min(most, requirement)
    else return null
  }
  return isWhole ? { of: schema.type, least, most } : null
}

function objectOf(entries: v.ObjectEntries, checks: readonly v.GenericValidation[]): ObjectShape {
  const settings = new Map<string, Shape>()
  const required: (readonly [string, Shape])[] = []
  const defaults: (readonly [string, unknown])[] = []
  for (const [setting, schema] of Object.entries(entries)) {
    const shape = shapeOf(schema)
    settings.set(setting, shape)
    if (!v.isOfType('exact_optional', schema)) required.push([setting, shape])
    else if (schema.default !== undefined) defaults.push([setting, schema.default])
  }
  return { kind: 'object', settings, required, defaults, checks }
}

function variantOf(by: string, schemas: readonly (Composite | v.GenericSchema)[]): VariantShape {
  const options = new Map<unknown, ObjectShape>()
  const settings = new Map<string, Shape>()
  for (const schema of schemas) {
    assert(v.isOfType('strict_object', schema), 'an option of a variant is not a strict object')
    const name = schema.entries[by]
    assert(name !== undefined && isLiteral(name), 'an option of a variant has no name')
    const option = objectOf(schema.entries, checksOf(schema))
    options.set(name.literal, option)
    for (const [setting, shape] of option.settings) settings.set(setting, shape)
  }
  const any = scalarOf(oneOf([...options.keys()].map(String)))
  settings.set(by, any)
  const otherwise: ObjectShape = { kind: 'object', settings, required: [[by, any]], defaults: [], checks: [] }
  return { kind: 'variant', by, options, otherwise }
}

function isLiteral(schema: Composite | v.GenericSchema): schema is v.LiteralSchema<string, undefined> {
  return schema.type === 'literal'
}

/** What is said about an object as a whole, after its schema in a pipe. */
function checksOf(schema: v.GenericSchema): readonly v.GenericValidation[] {
  const pipe: readonly unknown[] = 'pipe' in schema && Array.isArray(schema.pipe) ? schema.pipe : []
  return pipe.filter(isValidation)
}

function isValidation(item: unknown): item is v.GenericValidation {
  return typeof item === 'object' && item !== null && 'kind' in item && item.kind === 'validation'
}
