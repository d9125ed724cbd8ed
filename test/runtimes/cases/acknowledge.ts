import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { MAX_ACKNOWLEDGED_BYTES } from '../app.ts'
import { type Answer, Connection, fieldOf, get, post } from '../client.ts'
import type { Case, Lab } from '../lab.ts'

const PREFER = { Prefer: 'respond-async' }
const LIMIT_ONE = { global: { concurrency: 1 } }
const queue = { maxQueuedCalls: 10, maxQueueDelayMs: 3000, queueOneWayCalls: true }

function expectAcknowledged(answer: Answer | undefined): void {
  expect(answer?.status).toBe(202)
  if (answer !== undefined) expect(fieldOf(answer, 'preference-applied')).toBe('respond-async')
}

async function finished(lab: Lab, count: number): Promise<number> {
  const sinceMs = Date.now()
  await lab.until(
    () => lab.counts(),
    (counts) => counts.finished === count,
    `${count} finished`,
    3000,
  )
  return Date.now() - sinceMs
}

/** The answer is there long before the handler is done, with the whole body read before. */
async function admitted(lab: Lab): Promise<string> {
  await lab.configure(LIMIT_ONE)
  const sinceMs = Date.now()
  expectAcknowledged(await lab.once(post('/work/read?ms=300', 'abc'.repeat(20_000), PREFER)))
  const answeredMs = Date.now() - sinceMs
  expect(answeredMs).toBeLessThan(290)
  expect((await lab.state()).active).toBe(1)
  await finished(lab, 1)
  const { bodies, running } = await lab.counts()
  expect({ bodies, running }).toEqual({ bodies: ['60000 bytes from 97 to 99'], running: 0 })
  await lab.quiet()
  await lab.hasExactly(1)
  return `202 after ${answeredMs} ms`
}

/** Those who wait are acknowledged while they wait, and run one after the other though their clients have gone. */
async function queued(lab: Lab, leave: (connection: Connection) => void): Promise<string> {
  await lab.configure({ ...LIMIT_ONE, queue })
  const clients = Array.from({ length: 4 }, () => new Connection(lab.port))
  const sinceMs = Date.now()
  for (const [index, client] of clients.entries()) {
    expectAcknowledged(await client.send(post('/work/read?ms=100', `${index}`.repeat(3), PREFER)))
  }
  const answeredMs = Date.now() - sinceMs
  for (const client of clients) leave(client)
  await finished(lab, 4)
  const { bodies, mostRunning } = await lab.counts()
  const order = [48, 49, 50, 51].map((code) => `3 bytes from ${code} to ${code}`)
  expect({ bodies, mostRunning }).toEqual({ bodies: order, mostRunning: 1 })
  await lab.quiet()
  await lab.hasExactly(1)
  return `4 × 202 in ${answeredMs} ms, all ran`
}

async function tooLong(lab: Lab): Promise<undefined> {
  await lab.configure({ ...LIMIT_ONE, queue })
  const long = 'x'.repeat(MAX_ACKNOWLEDGED_BYTES + 1)
  const chunked = get('/work/read', { ...PREFER, 'Transfer-Encoding': 'chunked' }, 'POST')
  const chunks = `${long.length.toString(16)}\r\n${long}\r\n0\r\n\r\n`
  for (const bytes of [post('/work/read', long, PREFER), chunked + chunks]) {
    expect((await lab.once(bytes))?.status).toBe(413)
    await lab.quiet()
  }
  // The same while it waits: its place in the queue is free again, too.
  const holder = lab.once(get('/work/sleep?ms=400'))
  await lab.until(
    () => lab.state(),
    ({ active }) => active === 1,
    'held',
  )
  expect((await lab.once(post('/work/read', long, PREFER)))?.status).toBe(413)
  expect((await lab.state()).queued.calls).toBe(0)
  await holder
  expectAcknowledged(await lab.once(post('/work/read', long.slice(1), PREFER)))
  await finished(lab, 2)
  await lab.hasExactly(1)
  return undefined
}

async function failures(lab: Lab): Promise<undefined> {
  await lab.configure({ ...LIMIT_ONE, queue: { ...queue, maxQueueDelayMs: 200 } })
  expectAcknowledged(await lab.once(post('/work/fail', '', PREFER)))
  await finished(lab, 1)
  await lab.quiet()
  // One that is acknowledged and then gets no room in time is told to the same hook.
  const holder = lab.once(get('/work/sleep?ms=600'))
  await lab.until(
    () => lab.state(),
    ({ active }) => active === 1,
    'held',
  )
  expectAcknowledged(await lab.once(post('/work/read', 'abc', PREFER)))
  await holder
  const { backgroundErrors } = await lab.until(
    () => lab.counts(),
    (counts) => counts.backgroundErrors.length === 2,
    'told',
  )
  expect(backgroundErrors).toEqual([
    'Error: failed in the background',
    'AcknowledgedRefusalError: Cannot run an acknowledged one-way request: refused with queue_timeout',
  ])
  await lab.hasExactly(1)
  return undefined
}

async function notQueued(lab: Lab): Promise<undefined> {
  await lab.configure({ ...LIMIT_ONE, queue: { ...queue, queueOneWayCalls: false } })
  const holder = lab.once(get('/work/sleep?ms=300'))
  await lab.until(
    () => lab.state(),
    ({ active }) => active === 1,
    'held',
  )
  const refused = await lab.once(post('/work/read', 'abc', PREFER))
  expect(JSON.parse(refused?.body ?? '')).toMatchObject({ status: 503, reason: 'one_way', scope: 'global' })
  expect((await lab.once(get('/work/sleep?ms=1')))?.status).toBe(200) // a two-way one waits
  await holder
  await lab.quiet()
  return undefined
}

/** The client goes while its body is being read: nothing was promised, nothing runs, nothing is held. */
async function goneBefore(lab: Lab, leave: (connection: Connection) => void): Promise<string> {
  await lab.configure({ ...LIMIT_ONE, queue })
  const connection = new Connection(lab.port)
  const answer = connection.send(get('/work/read', { ...PREFER, 'Content-Length': '50000' }, 'POST'))
  connection.write('x'.repeat(10_000))
  await lab.until(
    () => lab.state(),
    ({ active }) => active === 1,
    'held',
  )
  await sleep(100)
  leave(connection)
  const quietMs = await lab.quiet(4000)
  expect((await answer)?.status).not.toBe(202)
  expect((await lab.counts()).started).toBe(0)
  await lab.hasExactly(1)
  return `quiet after ${quietMs} ms`
}

const fin = (connection: Connection): void => connection.fin()
const reset = (connection: Connection): void => connection.reset()

export const acknowledge: readonly Case[] = [
  {
    name: 'WEB-2 an admitted one-way request is acknowledged at once and runs in the background',
    label: 'one-way, admitted',
    run: admitted,
  },
  {
    name: 'WEB-2 queued one-way requests are acknowledged at once and run in order, their clients gone by FIN',
    label: 'one-way, queued, then FIN',
    run: (lab) => queued(lab, fin),
  },
  {
    name: 'WEB-2 queued one-way requests are acknowledged at once and run in order, their clients gone by RST',
    label: 'one-way, queued, then RST',
    run: (lab) => queued(lab, reset),
  },
  {
    name: 'WEB-2 a one-way request with too long a body gets 413, and what it held is free',
    label: 'one-way, 413',
    run: tooLong,
  },
  {
    name: 'WEB-2 what fails in the background is told to the hook, and its permit is free',
    label: 'one-way, failures',
    run: failures,
  },
  {
    name: 'QUE-4 a one-way request that may not wait is refused at once',
    label: 'one-way, not queued',
    run: notQueued,
  },
  {
    name: 'WEB-2 a client that goes by FIN before its one-way body is whole leaves nothing behind',
    label: 'one-way, FIN in the body',
    run: (lab) => goneBefore(lab, fin),
  },
  {
    name: 'WEB-2 a client that goes by RST before its one-way body is whole leaves nothing behind',
    label: 'one-way, RST in the body',
    run: (lab) => goneBefore(lab, reset),
  },
]
