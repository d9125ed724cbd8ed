import { expect } from 'vitest'
import type { ConfigInput } from '../../../src/core.ts'
import { get, runLanes } from '../client.ts'
import { type Case, IS_FULL, type Lab } from '../lab.ts'

const LANES = 8
const REQUESTS = IS_FULL ? 4000 : 250

/** Every kind of answer, and the status that it is served with. */
const KINDS: readonly (readonly [kind: string, path: string, status: number, method?: string])[] = [
  ['text', '/text', 200],
  ['JSON', '/json', 200],
  ['chunked stream', '/chunked', 200],
  ['stream with Content-Length', '/length', 200],
  ['SSE', '/sse', 200],
  ['HEAD', '/text', 200, 'HEAD'],
  ['HEAD of a stream', '/chunked', 200, 'HEAD'],
  ['204', '/empty', 204],
  ['thrown error', '/throw', 500],
  ['not found', '/missing', 404],
]

/** As many strictly sequential lanes as the limit, and no queue: one refusal is a permit that was late. */
async function noRefusals(
  lab: Lab,
  config: ConfigInput,
  path: string,
  status: number,
  method = 'GET',
): Promise<string> {
  await lab.configure(config)
  const { statuses, failed, reconnects } = await runLanes(lab.port, LANES, REQUESTS, get(path, {}, method))
  expect({ failed, statuses: Object.fromEntries(statuses) }).toEqual({
    failed: 0,
    statuses: { [status]: LANES * REQUESTS },
  })
  await lab.quiet()
  return `0 of ${LANES * REQUESTS}${reconnects > 0 ? `, ${reconnects} reconnects` : ''}`
}

export const lanes: readonly Case[] = [
  ...KINDS.map(
    ([kind, path, status, method]): Case => ({
      name: `REL-1 sequential lanes at the limit are never refused, handler held: ${kind}`,
      label: `refused, handler held: ${kind}`,
      run: (lab) => noRefusals(lab, { global: { concurrency: LANES } }, `/quick${path}`, status, method),
    }),
  ),
  {
    name: 'REL-1 the lanes are fast enough to catch a permit that is free only after the response',
    label: 'refused, control: released late',
    on: ['node', 'deno', 'bun'],
    run: async (lab) => {
      const { statuses } = await runLanes(lab.port, LANES, REQUESTS, get('/late/text'))
      expect(statuses.get(503) ?? 0).toBeGreaterThan(0)
      return `${statuses.get(503)} of ${LANES * REQUESTS}`
    },
  },
]
