import { setTimeout as sleep } from 'node:timers/promises'
import { Connection, get, post } from '../client.ts'
import type { Case, Lab } from '../lab.ts'

const LIMIT = 4
const WAITING = 8

const MANNERS = ['FIN', 'RST', 'half-close'] as const
type Manner = (typeof MANNERS)[number]

function leave(connection: Connection, manner: Manner): void {
  if (manner === 'FIN') connection.fin()
  else if (manner === 'RST') connection.reset()
  else connection.halfClose()
}

/** Clients that run and clients that wait all go at once; what they held must be free again, and the server well. */
async function whileQueued(lab: Lab, manner: Manner, bytes: string): Promise<string> {
  const queue = { maxQueuedCalls: 100, maxQueueDelayMs: 1000 }
  await lab.configure({ global: { concurrency: LIMIT }, queue })
  const clients = Array.from({ length: LIMIT + WAITING }, () => new Connection(lab.port))
  const answers = clients.map((client) => client.send(bytes))
  await lab.until(
    () => lab.state(),
    ({ queued }) => queued.calls === WAITING,
    'all queued',
  )
  for (const client of clients) leave(client, manner)
  const quietMs = await lab.quiet()
  const { started } = await lab.counts()
  for (const client of clients) client.fin()
  await lab.hasExactly(LIMIT)
  const answered = (await Promise.all(answers)).filter((answer) => answer?.status === 200).length
  return `${started} ran, ${answered} answered, ${quietMs} ms`
}

/** Clients go while handlers run whose bodies hold the permits: bodies that nobody will ever read, perhaps. */
async function beforeTheBody(lab: Lab, manner: Manner, path: string): Promise<string> {
  const delivery = { key: 'client', maxOpenBodies: LIMIT, stallTimeoutMs: 1000 }
  await lab.configure({ global: { concurrency: LIMIT }, contracts: { '/work': { holdUntil: 'body', delivery } } })
  const clients = Array.from({ length: LIMIT }, () => new Connection(lab.port))
  const answers = clients.map((client) => client.send(get(path, { 'X-Client': 'one' })))
  await lab.until(
    () => lab.counts(),
    ({ running }) => running === LIMIT,
    'running, all',
  )
  for (const client of clients) leave(client, manner)
  const quietMs = await lab.quiet()
  for (const client of clients) client.fin()
  await Promise.all(answers)
  await lab.hasExactly(LIMIT)
  return `${quietMs} ms`
}

/** Clients of streamed bodies go; the permits that the bodies hold must be free again, the sources over. */
async function whileStreaming(lab: Lab, manner: Manner, path: string): Promise<string> {
  await lab.configure({ global: { concurrency: LIMIT }, contracts: { '/work': { holdUntil: 'body' } } })
  const clients = Array.from({ length: LIMIT }, () => new Connection(lab.port))
  const answers = clients.map((client) => client.send(get(path)))
  await lab.until(
    () => lab.counts(),
    ({ sources, takenBytes }) => sources === LIMIT && takenBytes >= 0,
    'streaming',
  )
  await sleep(100)
  for (const client of clients) leave(client, manner)
  const quietMs = await lab.quiet()
  for (const client of clients) client.fin()
  await Promise.all(answers)
  const { cancelled, ended } = await lab.until(
    () => lab.counts(),
    (counts) => counts.cancelled + counts.ended === LIMIT,
    'over, every source',
  )
  await lab.hasExactly(LIMIT)
  return `${cancelled} cancelled, ${ended} ended, ${quietMs} ms`
}

export const disconnects: readonly Case[] = MANNERS.flatMap((manner): Case[] => [
  {
    name: `RUN-3 clients that run and wait go by ${manner} at an old compatibility date: nothing leaks`,
    label: `quiet after ${manner}, running and queued, date 2024-01-01`,
    on: ['workerd'],
    run: (lab) => whileQueued(lab.withOldDate(), manner, get('/work/sleep?ms=300')),
  },
  {
    name: `RUN-3 clients that run and wait go by ${manner}, nobody asks for the signal: nothing leaks`,
    label: `quiet after ${manner}, running and queued`,
    run: (lab) => whileQueued(lab, manner, get('/work/sleep?ms=300')),
  },
  {
    name: `RUN-2 clients that run and wait go by ${manner}, the handler has the signal: nothing leaks`,
    label: `quiet after ${manner}, running and queued, signal`,
    run: (lab) => whileQueued(lab.withSignals(), manner, get('/work/signal?ms=300')),
  },
  {
    name: `RUN-2 clients with unread bodies go by ${manner}, the handler has the signal: nothing leaks`,
    label: `quiet after ${manner}, running and queued, POST`,
    run: (lab) => whileQueued(lab.withSignals(), manner, post('/work/signal?ms=300', 'x'.repeat(1024))),
  },
  {
    name: `REL-2 clients go by ${manner} before their bodies begin: nothing leaks`,
    label: `quiet after ${manner}, before a held text`,
    run: (lab) => beforeTheBody(lab, manner, '/work/sleep?ms=300'),
  },
  {
    name: `REL-2 clients go by ${manner} before their streams begin: nothing leaks`,
    label: `quiet after ${manner}, before a held stream`,
    run: (lab) => beforeTheBody(lab, manner, '/work/sleep?ms=300&then=stream'),
  },
  {
    name: `REL-2 clients go by ${manner} while their bodies are streamed: nothing leaks`,
    label: `quiet after ${manner}, streaming`,
    run: (lab) => whileStreaming(lab, manner, '/work/ticks?count=40&every=20'),
  },
  {
    name: `REL-2 clients go by ${manner} while the source of their bodies is idle: nothing leaks`,
    label: `quiet after ${manner}, idle stream`,
    run: (lab) => whileStreaming(lab, manner, '/work/ticks?count=2&every=1000'),
  },
])
