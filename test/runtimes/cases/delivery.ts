import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { ConfigInput } from '../../../src/core.ts'
import { Connection, fieldOf, get } from '../client.ts'
import { type Case, IS_FULL, type Lab } from '../lab.ts'

const MAX_OPEN_BODIES = 2
const MEGABYTES = 50

const mega = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MB`

function delivered(stallTimeoutMs: number, maxOpenBodies: number = MAX_OPEN_BODIES): ConfigInput {
  const delivery = { key: 'client', maxOpenBodies, stallTimeoutMs }
  return { global: { concurrency: 20 }, contracts: { '/held': { delivery } } }
}

/** Takes the head and the first bytes of a big body, and then nothing more. */
async function stall(lab: Lab, client: string, megabytes: number): Promise<Connection> {
  const connection = new Connection(lab.port)
  connection.send(get(`/held/big?megabytes=${megabytes}`, { 'X-Client': client })).catch(() => undefined)
  await new Promise((resolve) => connection.socket.once('data', resolve))
  connection.socket.pause()
  return connection
}

async function stalledReaders(lab: Lab): Promise<string> {
  const stallTimeoutMs = 1500
  await lab.configure(delivered(stallTimeoutMs))
  const residentBytes = lab.server.residentBytes()
  const stalled = await Promise.all(Array.from({ length: MAX_OPEN_BODIES }, () => stall(lab, 'slow', MEGABYTES)))
  await sleep(500)

  const { takenBytes } = await lab.counts()
  const grownBytes = lab.server.residentBytes() - residentBytes
  expect(takenBytes).toBeLessThan(MAX_OPEN_BODIES * MEGABYTES * 2 ** 20 * 0.5)
  const third = await lab.once(get('/held/text', { 'X-Client': 'slow' }))
  expect(third).toMatchObject({ status: 429, isComplete: true })
  expect(JSON.parse(third?.body ?? '')).toMatchObject({ reason: 'delivery', scope: 'contract:/held' })
  for (const client of ['quick', 'another']) {
    expect(await lab.once(get('/held/big?megabytes=1', { 'X-Client': client }))).toMatchObject({
      status: 200,
      bodyBytes: 2 ** 20,
      isComplete: true,
    })
  }

  const endedMs = await lab.quiet(stallTimeoutMs + 3000)
  expect((await lab.counts()).cancelled).toBe(MAX_OPEN_BODIES)
  await lab.admits(1, get('/held/text', { 'X-Client': 'slow' }))
  for (const connection of stalled) {
    connection.socket.resume()
    connection.fin()
  }
  return `${mega(takenBytes / MAX_OPEN_BODIES)} each, RSS ${grownBytes < 0 ? '' : '+'}${mega(grownBytes)}, ${500 + endedMs} ms`
}

/**
 * A reader that takes a little all the time is no stalled one, nor is one that waits for its source. But the kernel's
 * buffers stand between: how much a reader must take until the server is asked for more says how slow it may be.
 */
async function slowButAlive(lab: Lab): Promise<string> {
  await lab.configure(delivered(1500))
  const waiting = lab.once(get('/held/ticks?count=2&every=1800', { 'X-Client': 'patient' }))
  const reader = await stall(lab, 'slow', 1000)
  await sleep(300)
  let [{ takenBytes }, readBytes, mostBytes] = [await lab.counts(), 0, 0]
  for (const endMs = Date.now() + 2200; Date.now() < endMs; ) {
    const untilBytes = reader.socket.bytesRead + 131_072
    while (reader.socket.bytesRead < untilBytes && Date.now() < endMs) {
      reader.socket.resume()
      await new Promise((resolve) => setImmediate(resolve))
      reader.socket.pause()
    }
    const counts = await lab.counts()
    if (counts.takenBytes === takenBytes) continue
    takenBytes = counts.takenBytes
    if (readBytes > 0) mostBytes = Math.max(mostBytes, reader.socket.bytesRead - readBytes)
    readBytes = reader.socket.bytesRead
    await sleep(20)
  }
  expect((await lab.counts()).cancelled).toBe(0)
  expect(await waiting).toMatchObject({ status: 200, bodyBytes: 32, isComplete: true })
  reader.fin()
  await lab.quiet()
  return `every ${mega(mostBytes)} at most`
}

/** Without `delivery`, a stalled reader keeps its permit for half a minute and no longer. */
async function stalledPermit(lab: Lab): Promise<string> {
  await lab.configure({ global: { concurrency: 1 }, contracts: { '/held': { holdUntil: 'body' } } })
  const reader = await stall(lab, 'slow', MEGABYTES)
  const quietMs = await lab.quiet(40_000)
  expect(quietMs).toBeGreaterThan(29_000)
  reader.fin()
  await lab.hasExactly(1)
  return `${quietMs} ms`
}

/** Whatever answers without a body to wait for gives its place back at once, however often. */
async function nothingToDeliver(lab: Lab): Promise<undefined> {
  const only = { key: 'client', maxOpenBodies: 1, stallTimeoutMs: 20_000 }
  const contracts = Object.fromEntries(
    ['/held', '/before-etag', '/after-etag'].map((path) => [path, { holdUntil: 'body', delivery: only } as const]),
  )
  await lab.configure({ global: { concurrency: 1 }, contracts })
  const client = { 'X-Client': 'one' }
  const connection = new Connection(lab.port)
  const requests: [string, number][] = [
    [get('/held/text', client, 'HEAD'), 200],
    [get('/held/chunked', client, 'HEAD'), 200],
    [get('/held/length', client, 'HEAD'), 200],
    [get('/held/sse', client, 'HEAD'), 200],
    [get('/held/empty', client), 204],
  ]
  for (const path of ['/before-etag/text', '/after-etag/text', '/before-etag/chunked']) {
    const first = await lab.once(get(path, client))
    const etag = first === undefined ? undefined : fieldOf(first, 'etag')
    if (etag === undefined) throw new Error(`${path} has no ETag: ${first?.status} ${first?.head}`)
    requests.push([get(path, { ...client, 'If-None-Match': etag }), 304])
  }
  for (const [bytes, status] of requests) {
    for (let round = 0; round < 10; round += 1) {
      const answer = await connection.send(bytes)
      expect(`${bytes.split(' HTTP')[0]} ${answer?.status}`).toBe(`${bytes.split(' HTTP')[0]} ${status}`)
    }
  }
  connection.fin()
  await lab.quiet()
  return undefined
}

/** A body that another middleware leaves where it is, unread and uncancelled, must not keep its place for good. */
async function droppedBodies(lab: Lab): Promise<string> {
  const delivery = { key: 'client', maxOpenBodies: 4, stallTimeoutMs: 500 }
  await lab.configure({ global: { concurrency: 4 }, contracts: { '/before-drop': { holdUntil: 'body', delivery } } })
  for (const path of ['/text', '/chunked', '/length', '/sse']) {
    expect(await lab.once(get(`/before-drop${path}`, { 'X-Client': 'one' }))).toMatchObject({ body: 'another body' })
  }
  const quietMs = await lab.quiet(3000)
  await lab.hasExactly(4)
  return `${quietMs} ms`
}

/** What admission costs a route that asks for none of this, and what holding a body costs. CPU of the server. */
async function costs(lab: Lab): Promise<string> {
  const requests = IS_FULL ? 2000 : 250
  const run = async (path: string): Promise<number> => {
    const before = lab.server.cpuMs()
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        const connection = new Connection(lab.port)
        for (let sent = 0; sent < requests; sent += 1) await connection.send(get(path))
        connection.fin()
      }),
    )
    return lab.server.cpuMs() - before
  }
  await lab.configure({ global: { concurrency: 20 }, contracts: { '/held': { holdUntil: 'body' } } })
  const total = { bare: 0, quick: 0, held: 0 }
  for (let round = 0; round < 3; round += 1) {
    // The first round warms up.
    const keep = round === 0 ? 0 : 1
    total.bare += keep * (await run('/bare/text'))
    total.quick += keep * (await run('/quick/text'))
    total.held += keep * (await run('/held/text'))
  }
  const ratio = (ms: number): string => (ms / total.bare).toFixed(2)
  return `plain ×${ratio(total.quick)}, body held ×${ratio(total.held)}`
}

export const delivery: readonly Case[] = [
  {
    name: 'REL-3 readers that take nothing cost their own key its places, and nobody else anything',
    label: '2 stalled readers of 50 MB: taken, RSS',
    run: stalledReaders,
  },
  {
    name: 'REL-3 a slow reader and one that waits for its source are not taken for stalled',
    label: 'slow reader: source asked again',
    run: slowButAlive,
  },
  ...(IS_FULL
    ? [
        {
          name: 'REL-6 a stalled reader on a route without delivery keeps its permit for 30 seconds',
          label: 'stalled reader, body held: free after',
          run: stalledPermit,
        },
      ]
    : []),
  {
    name: 'REL-4 HEAD, 304 and null bodies give permits and places back at once',
    label: 'HEAD, 304, 204 with one place',
    run: nothingToDeliver,
  },
  {
    name: 'REL-2 a body that another middleware drops unread gives everything back within the stall timeout',
    label: 'body dropped unread: free after',
    run: droppedBodies,
  },
  {
    name: 'REL-4 a route without holdUntil and delivery costs what admission costs, no body (reported only)',
    label: 'CPU against no admission',
    run: costs,
  },
]
