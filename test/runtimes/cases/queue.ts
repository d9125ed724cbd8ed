import { gzipSync } from 'node:zlib'
import { expect } from 'vitest'
import { Connection, get, post } from '../client.ts'
import type { Case, Lab } from '../lab.ts'

const UNKNOWN_BODY_BYTES = 5000

/** Requests that wait, each with what it must reserve in the queue; none is read before it runs. */
const gzip = gzipSync('x'.repeat(100_000)).toString('latin1')
const WAITING: readonly (readonly [
  label: string,
  bytes: string,
  declaredBytes: number | undefined,
  served?: string,
])[] = [
  ['GET', get('/work/sleep?ms=1'), 0],
  ['HEAD', get('/work/sleep?ms=1', {}, 'HEAD'), 0],
  ['POST, 1000 bytes', post('/work/read', 'x'.repeat(1000)), 1000, '1000 bytes from 120 to 120'],
  ['POST, 0 bytes', post('/work/sleep?ms=1', ''), 0],
  ['POST, nothing declared', get('/work/sleep?ms=1', {}, 'POST'), undefined],
  [
    'POST, chunked',
    `${get('/work/read', { 'Transfer-Encoding': 'chunked' }, 'POST')}3\r\nabc\r\n0\r\n\r\n`,
    UNKNOWN_BODY_BYTES,
    '3 bytes from 97 to 99',
  ],
  [
    'POST, gzip',
    post('/work/read', gzip, { 'Content-Encoding': 'gzip' }),
    gzip.length,
    `${gzip.length} bytes from 31 to 0`,
  ],
  ['PUT, 70 000 bytes', post('/work/sleep?ms=1', 'y'.repeat(70_000)).replace('POST', 'PUT'), 70_000],
]

async function ledger(lab: Lab): Promise<string> {
  const queue = {
    maxQueuedCalls: 100,
    maxQueuedBytes: 100_000,
    maxQueueDelayMs: 5000,
    unknownBodyBytes: UNKNOWN_BODY_BYTES,
  }
  await lab.configure({ global: { concurrency: 1 }, queue })
  const holder = lab.once(get('/work/sleep?ms=1500'))
  await lab.until(
    () => lab.state(),
    ({ active }) => active === 1,
    'held',
  )
  // A request without any declaration has no body, but that is not what the bodies of these two hosts say.
  const undeclaredBytes = lab.runtime === 'node' || lab.runtime === 'deno' ? UNKNOWN_BODY_BYTES : 0
  const connections: Connection[] = []
  const answers: ReturnType<Connection['send']>[] = []
  let [calls, bytes] = [0, 0]
  for (const [label, request, declaredBytes] of WAITING) {
    const connection = new Connection(lab.port)
    connections.push(connection)
    answers.push(connection.send(Buffer.from(request, 'latin1')))
    calls += 1
    bytes += declaredBytes ?? undeclaredBytes
    const state = await lab.until(
      () => lab.state(),
      ({ queued }) => queued.calls === calls,
      label,
    )
    expect(`${label}: ${state.queued.bytes}`).toBe(`${label}: ${bytes}`)
  }
  // Whoever brings more than there is left does not wait; whoever brings nothing always may.
  const tooMuch = await lab.once(post('/work/read', 'z'.repeat(30_000)))
  expect(JSON.parse(tooMuch?.body ?? '')).toMatchObject({ status: 503, reason: 'queue_bytes' })

  expect((await holder)?.status).toBe(200)
  for (const [index, [label, , , served]] of WAITING.entries()) {
    const answer = await answers[index]
    expect(`${label}: ${answer?.status}`).toBe(`${label}: 200`)
    if (served !== undefined) expect(answer?.body).toBe(served)
  }
  for (const connection of connections) connection.fin()
  await lab.quiet()
  return `${bytes} bytes of ${calls} calls`
}

/** Many more than there is room for at once, and all of them are served. */
async function crowd(lab: Lab): Promise<string> {
  await lab.configure({ global: { concurrency: 2 }, queue: { maxQueuedCalls: 100, maxQueueDelayMs: 10_000 } })
  const sinceMs = Date.now()
  await lab.admits(60, get('/work/sleep?ms=10'))
  const tookMs = Date.now() - sinceMs
  await lab.quiet()
  const { mostRunning, started, violations } = await lab.counts()
  expect({ mostRunning, started, violations }).toEqual({ mostRunning: 2, started: 60, violations: 0 })
  await lab.hasExactly(2)
  return `60 served in ${tookMs} ms`
}

/** Everybody waits for somebody who never ends: each is told in time, nobody is woken by the others. */
async function expiry(lab: Lab): Promise<string> {
  const maxQueueDelayMs = 300
  await lab.configure({ global: { concurrency: 1 }, queue: { maxQueuedCalls: 100, maxQueueDelayMs } })
  const holder = lab.once(get('/work/sleep?ms=1500'))
  await lab.until(
    () => lab.state(),
    ({ active }) => active === 1,
    'held',
  )
  const waits = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const sinceMs = Date.now()
      const answer = await lab.once(get('/work/sleep?ms=1'))
      expect(JSON.parse(answer?.body ?? '')).toMatchObject({ status: 503, reason: 'queue_timeout', scope: 'global' })
      return Date.now() - sinceMs
    }),
  )
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(maxQueueDelayMs - 1)
  expect(Math.max(...waits)).toBeLessThan(1400)
  expect((await lab.state()).queued).toEqual({ calls: 0, bytes: 0, oldestWaitMs: 0 })
  expect((await holder)?.status).toBe(200)
  await lab.quiet()
  return `after ${Math.min(...waits)} to ${Math.max(...waits)} ms`
}

export const queue: readonly Case[] = [
  {
    name: 'QUE-8 waiting requests reserve the bytes that they declare, and are read by their handlers only',
    label: 'ledger of declared bytes',
    run: ledger,
  },
  { name: 'RUN-3 of 60 requests at a limit of 2 each is served', label: '60 requests, limit 2', run: crowd },
  {
    name: 'RUN-3 of 60 requests at a limit of 2 each is served at an old compatibility date',
    label: '60 requests, limit 2, date 2024-01-01',
    on: ['workerd'],
    run: (lab) => crowd(lab.withOldDate()),
  },
  {
    name: 'QUE-9 waiters expire on time at an old compatibility date',
    label: 'expiry of 300 ms, date 2024-01-01',
    on: ['workerd'],
    run: (lab) => expiry(lab.withOldDate()),
  },
  { name: 'QUE-9 waiters expire on time though nothing else happens', label: 'expiry of 300 ms', run: expiry },
]
