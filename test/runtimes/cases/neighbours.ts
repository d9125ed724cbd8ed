import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { WebSocket } from 'ws'
import type { ConfigInput } from '../../../src/core.ts'
import { Connection, fieldOf, get, post, runLanes } from '../client.ts'
import type { Case, Lab } from '../lab.ts'

const PIPELINED = 4

/** Several requests in one packet. How many of them are served differs; what they held must be free again. */
async function pipelined(lab: Lab): Promise<string> {
  await lab.configure({ global: { concurrency: 2 } })
  const connection = new Connection(lab.port)
  const bytes = get('/work/sleep?ms=50')
  const answers = [connection.send(bytes.repeat(PIPELINED))]
  for (let more = 1; more < PIPELINED; more += 1) answers.push(connection.send(''))
  const statuses = (await Promise.all(answers)).map((answer) => answer?.status ?? 'none')
  connection.fin()
  await lab.quiet()
  await lab.hasExactly(2)
  return statuses.join(' ')
}

/** The same, in the queue, and the client goes at once. */
async function pipelinedAndGone(lab: Lab): Promise<string> {
  const queue = { maxQueuedCalls: 10, maxQueueDelayMs: 1000 }
  await lab.configure({ global: { concurrency: 1 }, queue })
  const holder = lab.once(get('/work/sleep?ms=300'))
  await lab.until(
    () => lab.state(),
    ({ active }) => active === 1,
    'held',
  )
  const connection = new Connection(lab.port)
  const answer = connection.send(get('/work/sleep?ms=50').repeat(PIPELINED))
  await sleep(100)
  const { queued } = await lab.state()
  connection.reset()
  await Promise.all([answer, holder])
  const quietMs = await lab.quiet()
  const { started } = await lab.counts()
  await lab.hasExactly(1)
  return `${queued.calls} queued, ${started - 1} ran, ${quietMs} ms`
}

async function openSocket(lab: Lab, path: string): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${lab.port}${path}`)
  await new Promise((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', reject)
  })
  const echoed = new Promise((resolve) => socket.once('message', (data) => resolve(`${data}`)))
  socket.send('hello')
  expect(await echoed).toBe('hello')
  return socket
}

/** Open sockets hold nothing, however many there are; only their handshakes pass through admission. */
async function webSockets(lab: Lab): Promise<string> {
  const route = {
    concurrency: 1,
    holdUntil: 'body',
    delivery: { key: 'client', maxOpenBodies: 1, stallTimeoutMs: 60_000 },
  } as const
  const open = { global: { concurrency: 1 }, contracts: { '/': { methods: { 'GET /routed/echo': route } } } }
  await lab.configure(open)
  const before = await lab.state()
  const sockets: WebSocket[] = []
  for (const path of ['/echo', '/routed/echo']) {
    for (let opened = 0; opened < 4; opened += 1) sockets.push(await openSocket(lab, path))
  }
  const after = await lab.state()
  expect(after.active).toBe(0)
  expect(after.totals.admitted - before.totals.admitted).toBe(sockets.length)
  await lab.hasExactly(1)
  for (const socket of sockets) socket.close()

  const closed = { contracts: { '/': { methods: { 'GET /routed/echo': { ...route, concurrency: 0 } } } } }
  await lab.configure(closed)
  await expect(openSocket(lab, '/routed/echo')).rejects.toThrow('503')
  await lab.configure({ global: { concurrency: 0 } })
  await expect(openSocket(lab, '/echo')).rejects.toThrow('503')
  return `${sockets.length} open, 0 held`
}

/** A timeout around admission answers while the handler goes on, and the permit goes on with it. */
async function timeoutBefore(lab: Lab): Promise<string> {
  await lab.configure({ global: { concurrency: 1 } })
  expect((await lab.once(get('/before-timeout/sleep?ms=600')))?.status).toBe(504)
  const { active } = await lab.state()
  const { running } = await lab.counts()
  expect({ active, running }).toEqual({ active: 1, running: 1 })
  const quietMs = await lab.quiet()
  expect((await lab.counts()).finished).toBe(1)
  await lab.hasExactly(1)
  return `held on, free after ${quietMs} ms`
}

/**
 * The same around a wait: the waiter keeps its place, and its handler runs though nobody listens. Except on Deno, where
 * every answer aborts the signal of its request, and that takes the waiter out.
 */
async function timeoutWhileQueued(lab: Lab): Promise<string> {
  await lab.configure({ global: { concurrency: 1 }, queue: { maxQueuedCalls: 10, maxQueueDelayMs: 2000 } })
  const holder = lab.once(get('/work/sleep?ms=600'))
  await lab.until(
    () => lab.state(),
    ({ active }) => active === 1,
    'held',
  )
  expect((await lab.once(get('/before-timeout/sleep?ms=10')))?.status).toBe(504)
  const isWaiting = lab.runtime !== 'deno'
  expect((await lab.state()).queued.calls).toBe(isWaiting ? 1 : 0)
  await holder
  await lab.quiet()
  expect((await lab.counts()).started).toBe(isWaiting ? 2 : 1)
  await lab.hasExactly(1)
  return isWaiting ? 'ran later' : 'left the queue'
}

/** A timeout behind admission ends the call for admission, though the handler goes on. */
async function timeoutAfter(lab: Lab): Promise<string> {
  await lab.configure({ global: { concurrency: 1 } })
  expect((await lab.once(get('/after-timeout/sleep?ms=600')))?.status).toBe(504)
  const [{ active }, { running }] = await Promise.all([lab.state(), lab.counts()])
  expect({ active, running }).toEqual({ active: 0, running: 1 })
  await lab.hasExactly(1)
  return 'free at once'
}

const LANES = 8

/** Sequential lanes at the limit, with a body that another middleware has changed or will change. */
async function lanesThrough(lab: Lab, base: string): Promise<string> {
  const paths = ['/text', '/chunked', '/length', '/sse', '/empty', '/late']
  const config: ConfigInput = {
    global: { concurrency: LANES },
    contracts: { [base]: { holdUntil: 'body', delivery: { key: 'client', maxOpenBodies: LANES } } },
  }
  await lab.configure(config)
  const requests = 40
  const fields = { 'X-Client': 'one', 'Accept-Encoding': 'gzip' }
  const encodings = new Set<string>()
  for (const path of paths) {
    const status = path === '/empty' ? 204 : 200
    const { statuses, brokenOff } = await runLanes(lab.port, LANES, requests, get(base + path, fields))
    expect(`${path}: ${JSON.stringify([...statuses])}, ${brokenOff}`).toBe(
      `${path}: [[${status},${LANES * requests}]], 0`,
    )
    const answer = await lab.once(get(base + path, fields))
    if (answer !== undefined) encodings.add(fieldOf(answer, 'content-encoding') ?? 'none')
  }
  await lab.quiet()
  await lab.hasExactly(LANES)
  return `0/${paths.length * LANES * requests}, ${[...encodings].sort().join(' and ')}`
}

async function bodyLimits(lab: Lab, base: string, admittedOnes: number): Promise<undefined> {
  await lab.configure({ global: { concurrency: 1 } })
  const before = await lab.state()
  const long = 'x'.repeat(2000)
  const chunked = `${get(`${base}/read`, { 'Transfer-Encoding': 'chunked' }, 'POST')}7d0\r\n${long}\r\n0\r\n\r\n`
  for (const bytes of [post(`${base}/read`, long), chunked]) expect((await lab.once(bytes))?.status).toBe(413)
  expect((await lab.once(post(`${base}/read`, 'abc')))?.body).toBe('3 bytes from 97 to 99')
  await lab.quiet()
  const { totals } = await lab.state()
  expect(totals.admitted - before.totals.admitted).toBe(admittedOnes)
  await lab.hasExactly(1)
  return undefined
}

export const neighbours: readonly Case[] = [
  {
    name: 'RUN-6 pipelined requests leave nothing behind, however many of them a runtime serves',
    label: '4 pipelined, limit 2',
    run: pipelined,
  },
  {
    name: 'RUN-2 pipelined requests whose client goes while they wait leave nothing behind',
    label: '4 pipelined in the queue, RST',
    run: pipelinedAndGone,
  },
  {
    name: 'REL-5 a WebSocket holds its permit for the handshake only, and a refused one is told so',
    label: 'WebSocket',
    run: webSockets,
  },
  {
    name: 'REL-1 a timeout before admission answers early, and the permit is free when the handler is done',
    label: 'timeout before admission',
    run: timeoutBefore,
  },
  {
    name: 'QUE-1 a waiter whose request a timeout before admission has answered leaves or runs, and leaks nothing',
    label: 'timeout before admission, queued',
    run: timeoutWhileQueued,
  },
  {
    name: 'REL-1 a timeout behind admission frees the permit though the handler goes on',
    label: 'timeout behind admission',
    run: timeoutAfter,
  },
  ...['compress', 'etag'].flatMap((other): Case[] => [
    {
      name: `REL-2 sequential lanes at the limit are never refused with ${other} before admission`,
      label: `refused, ${other} before admission`,
      run: (lab) => lanesThrough(lab, `/before-${other}`),
    },
    {
      name: `REL-2 sequential lanes at the limit are never refused with ${other} behind admission`,
      label: `refused, ${other} behind admission`,
      run: (lab) => lanesThrough(lab, `/after-${other}`),
    },
  ]),
  {
    name: 'REL-1 what a body limit before admission turns away is no call',
    label: 'body limit before admission',
    run: (lab) => bodyLimits(lab, '/before-body-limit', 1),
  },
  {
    name: 'REL-1 what a body limit behind admission turns away gives its permit back',
    label: 'body limit behind admission',
    run: (lab) => bodyLimits(lab, '/after-body-limit', 3),
  },
]
