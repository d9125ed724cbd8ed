import { toJsonSchema } from '@valibot/to-json-schema'
import { configSchema, deliverySchema, methodSchema, partitionSchema, rateSchema, scopeSchema } from './schema.ts'

/** A JSON Schema document, or a part of one. */
export interface JsonSchema {
  readonly [keyword: string]: unknown
}

/**
 * What may be written as a configuration, as JSON Schema 2020-12, made from the schemas that `parseConfig` follows
 * (CFG-3): for editors and for checks before a deployment. A fresh object each time.
 *
 * It cannot say, and `parseConfig` alone checks: that selectors are registered, that `segmentsPerWindow` is at most
 * `windowMs`, and how many methods there are in all contracts together.
 */
export function configJsonSchema(): JsonSchema {
  const schema = toJsonSchema(configSchema, {
    target: 'draft-2020-12',
    typeMode: 'input',
    definitions: {
      rate: rateSchema,
      partition: partitionSchema,
      delivery: deliverySchema,
      scope: scopeSchema,
      method: methodSchema,
    },
    ignoreActions: ['check'],
  })
  return { ...schema }
}
