import { expect } from 'vitest'
import type { ConfigInput } from '../../../src/core.ts'
import { get, runLanes } from '../client.ts'
import { type Case, IS_FULL, type Lab } from '../lab.ts'

const LANES = 8
const REQUESTS = IS_FULL ? 4000 : 120

/** A kind of answer, and the status that it is served with; 0: the connection breaks off. */
interface Kind {
  readonly label: string
  readonly path: string
  readonly status: number
  readonly method?: string
  /** Of the usual number of requests, when they take longer. */
  readonly share?: number
}

const KINDS: readonly Kind[] = [
  { label: 'text', path: '/text', status: 200 },
  { label: 'JSON', path: '/json', status: 200 },
  { label: 'chunked stream', path: '/chunked', status: 200 },
  { label: 'stream with Content-Length', path: '/length', status: 200 },
  { label: 'SSE', path: '/sse', status: 200 },
  { label: 'HEAD', path: '/text', status: 200, method: 'HEAD' },
  { label: 'HEAD of a stream', path: '/chunked', status: 200, method: 'HEAD' },
  { label: '204', path: '/empty', status: 204 },
  { label: 'thrown error', path: '/throw', status: 500 },
  { label: 'not found', path: '/missing', status: 404 },
]
const BODY_KINDS: readonly Kind[] = [
  ...KINDS,
  { label: 'source ends after the declared length', path: '/late', status: 200, share: 0.25 },
  { label: 'source breaks', path: '/broken', status: 0, share: 0.25 },
]

/** As many strictly sequential lanes as there is room for, and no queue: one refusal is room that came too late. */
async function noRefusals(lab: Lab, config: ConfigInput, base: string, kind: Kind): Promise<string> {
  const { path, status, method = 'GET', share = 1 } = kind
  const requests = Math.ceil(REQUESTS * share)
  await lab.configure(config)
  const bytes = get(base + path, { 'X-Client': 'one' }, method)
  const { statuses, brokenOff } = await runLanes(lab.port, LANES, requests, bytes)
  const total = LANES * requests
  const expected = status === 0 ? { statuses: {}, brokenOff: total } : { statuses: { [status]: total }, brokenOff: 0 }
  expect({ statuses: Object.fromEntries(statuses), brokenOff }).toEqual(expected)
  await lab.quiet()
  return `0/${total}`
}

const atTheLimit = { global: { concurrency: LANES } } as const

export const lanes: readonly Case[] = [
  ...KINDS.map(
    (kind): Case => ({
      name: `REL-1 sequential lanes at the limit are never refused, held until the handler is done: ${kind.label}`,
      label: `refused, handler: ${kind.label}`,
      run: (lab) => noRefusals(lab, atTheLimit, '/quick', kind),
    }),
  ),
  {
    name: 'REL-1 the lanes are fast enough to catch a permit that is free only after the response',
    label: 'refused, control: released late',
    on: ['node', 'deno', 'bun'],
    run: async (lab) => {
      const { statuses } = await runLanes(lab.port, LANES, REQUESTS, get('/late/text'))
      expect(statuses.get(503) ?? 0).toBeGreaterThan(0)
      return `${statuses.get(503)}/${LANES * REQUESTS}`
    },
  },
  ...BODY_KINDS.map(
    (kind): Case => ({
      name: `REL-2 sequential lanes at the limit are never refused, held until the body is out: ${kind.label}`,
      label: `refused, body: ${kind.label}`,
      run: (lab) => noRefusals(lab, { ...atTheLimit, contracts: { '/held': { holdUntil: 'body' } } }, '/held', kind),
    }),
  ),
  ...BODY_KINDS.map((kind) => ({ ...kind, share: (kind.share ?? 1) * (IS_FULL ? 1 : 0.5) })).map(
    (kind): Case => ({
      name: `REL-3 sequential lanes of a key at its bound are never refused: ${kind.label}`,
      label: `refused, delivery: ${kind.label}`,
      run: (lab) => {
        const delivery = { key: 'client', maxOpenBodies: LANES }
        return noRefusals(lab, { contracts: { '/held': { delivery } } }, '/held', kind)
      },
    }),
  ),
  {
    name: 'REL-2 permits that bodies gave back were given back once',
    label: 'permits after all of that',
    run: async (lab) => {
      await lab.hasExactly(LANES)
      return undefined
    },
  },
]
