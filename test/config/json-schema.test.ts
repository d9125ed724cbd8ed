import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { configJsonSchema } from '../../src/config/json-schema.ts'
import { randomFrom } from '../support/random.ts'
import { everything, fixedWindow, mutated, pointersOf, slidingWindow, tokenBucket } from './support.ts'

const validate = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true }).compile(configJsonSchema())

function expectAgreement(candidate: unknown, valid: boolean): void {
  const document: unknown = JSON.parse(JSON.stringify(candidate))
  expect({ document, valid: validate(document) }).toEqual({ document, valid })
  expect({ document, valid: pointersOf(document).length === 0 }).toEqual({ document, valid })
}

describe('the JSON Schema and parseConfig agree', () => {
  const valid: unknown[] = [
    {},
    everything,
    { queue: { maxQueuedCalls: 0 } },
    { queue: { maxQueuedCalls: 1_000_000, maxQueuedBytes: 2 ** 40, maxQueueDelayMs: 2_147_483_647 } },
    { global: { concurrency: 0, rate: tokenBucket, partitions: {} } },
    { global: { partitions: { k: { rate: slidingWindow } } } },
    { contracts: { '/': { holdUntil: 'body', methods: {} }, ['a'.repeat(2048)]: {} } },
    { contracts: { a: { delivery: { key: 'k', maxOpenBodies: 1 } } } },
  ]
  it.each(valid)('CFG-3 on a valid document: %j', (candidate) => expectAgreement(candidate, true))

  const invalid: unknown[] = [
    null,
    [],
    5,
    { extra: 1 },
    { queue: {} },
    { queue: { maxQueuedCalls: -1 } },
    { queue: { maxQueuedCalls: 1_000_001 } },
    { queue: { maxQueuedCalls: 1, maxQueuedBytes: 2 ** 40 + 1 } },
    { queue: { maxQueuedCalls: 1, maxQueueDelayMs: 2_147_483_648 } },
    { queue: { maxQueuedCalls: 1, queueOneWayCalls: 'true' } },
    { queue: { maxQueuedCalls: '1' } },
    { global: null },
    { global: { concurrency: 1.5 } },
    { global: { concurrency: null } },
    { global: { constructor: 1 } },
    { global: { holdUntil: 'body' } },
    { global: { rate: {} } },
    { global: { rate: { ...tokenBucket, algorithm: 'bucket' } } },
    { global: { rate: { ...tokenBucket, tokenLimit: 0 } } },
    { global: { rate: { ...fixedWindow, segmentsPerWindow: 1 } } },
    { global: { rate: { ...slidingWindow, segmentsPerWindow: 1001 } } },
    { global: { partitions: { k: {} } } },
    { global: { partitions: { k: { maxPartitions: 5 } } } },
    { global: { partitions: { '': { concurrency: 1 } } } },
    { global: { partitions: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [i, { concurrency: 1 }])) } },
    { contracts: [] },
    { contracts: { '': {} } },
    { contracts: { ['a'.repeat(2049)]: {} } },
    { contracts: { a: { holdUntil: 'never' } } },
    { contracts: { a: { delivery: { key: '', maxOpenBodies: 1 } } } },
    { contracts: { a: { delivery: { key: 'k' } } } },
    { contracts: { a: { methods: { m: { methods: {} } } } } },
    { contracts: Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [i, {}])) },
  ]
  it.each(invalid.map((candidate, i) => [i, candidate]))('CFG-3 on invalid document %i', (_i, candidate) =>
    expectAgreement(candidate, false),
  )

  it('CFG-3 on thousands of documents with one or two random faults or none', () => {
    const seed = 20_260_417
    const random = randomFrom(seed)
    let valid = 0
    for (let round = 0; round < 4000; round += 1) {
      const document = mutated(everything, random(3), random)
      // What JSON Schema cannot say is told apart by its message.
      const bySchema = validate(document)
      const byParse = pointersOf(document).length === 0
      const rate = Object(document)?.contracts?.['/orders']?.rate
      if (bySchema && !byParse && rate?.segmentsPerWindow > rate?.windowMs) continue
      expect({ seed, document, valid: bySchema }).toEqual({ seed, document, valid: byParse })
      if (byParse) valid += 1
    }
    expect(valid).toBeGreaterThan(500)
    expect(valid).toBeLessThan(3500)
  })
})

it('CFG-3 every object in the JSON Schema is closed or a record with bounded ids', () => {
  let objects = 0
  const visit = (schema: unknown): void => {
    if (typeof schema !== 'object' || schema === null) return
    if ('type' in schema && schema.type === 'object') {
      objects += 1
      expect(schema).toHaveProperty('additionalProperties')
      if (!('properties' in schema)) expect(schema).toHaveProperty('propertyNames.maxLength', 2048)
      else expect(schema).toHaveProperty('additionalProperties', false)
    }
    for (const part of Object.values(schema)) visit(part)
  }
  visit(configJsonSchema())
  expect(objects).toBeGreaterThanOrEqual(10)
})

it('CFG-3 the JSON Schema shows the defaults and is a fresh object each time', () => {
  const schema = configJsonSchema()
  expect(schema).toHaveProperty('properties.queue.properties.maxQueuedBytes.default', 16_777_216)
  expect(schema).toHaveProperty('properties.queue.required', ['maxQueuedCalls'])
  expect(configJsonSchema()).toEqual(schema)
  expect(configJsonSchema()).not.toBe(schema)
  expect(JSON.parse(JSON.stringify(schema))).toEqual(schema)
})
