import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import { expect } from 'vitest'
import { Connection, get } from '../client.ts'
import type { Case, Lab } from '../lab.ts'
import type { Runtime } from '../servers.ts'

const KILOBYTE = 'x'.repeat(1024)
const TEN_MEGABYTES = 10 * 2 ** 20

const head = (fields: { readonly [name: string]: string }): string => get('/work/read', fields, 'POST')
const chunk = (bytes: string): string => `${bytes.length.toString(16)}\r\n${bytes}\r\n`

/** A body that a refused request comes with; what follows the head is sent at once, as fast as it goes. */
interface Body {
  readonly label: string
  readonly head: string
  readonly parts: readonly (string | Uint8Array)[]
  /** Does the client keep its promise, so that the connection could go on? */
  readonly isWhole: boolean
  readonly mayBeLostOn?: Runtime
}

const gzip = gzipSync(KILOBYTE.repeat(64))
const BODIES: readonly Body[] = [
  { label: '1 KB', head: head({ 'Content-Length': '1024' }), parts: [KILOBYTE], isWhole: true },
  {
    label: '1 KB chunked',
    head: head({ 'Transfer-Encoding': 'chunked' }),
    parts: [chunk(KILOBYTE), '0\r\n\r\n'],
    isWhole: true,
  },
  {
    label: 'gzip',
    head: head({ 'Content-Length': `${gzip.length}`, 'Content-Encoding': 'gzip' }),
    parts: [gzip],
    isWhole: true,
  },
  {
    label: '10 MB',
    head: head({ 'Content-Length': `${TEN_MEGABYTES}` }),
    parts: Array.from({ length: 160 }, () => KILOBYTE.repeat(64)),
    isWhole: true,
    mayBeLostOn: 'workerd',
  },
  {
    label: '10 MB chunked',
    head: head({ 'Transfer-Encoding': 'chunked' }),
    parts: [...Array.from({ length: 160 }, () => chunk(KILOBYTE.repeat(64))), '0\r\n\r\n'],
    isWhole: true,
    mayBeLostOn: 'workerd',
  },
  {
    label: 'Expect: 100-continue',
    head: head({ 'Content-Length': '1024', Expect: '100-continue' }),
    parts: [],
    isWhole: false,
  },
  {
    label: '10 MB promised, 1 KB sent',
    head: head({ 'Content-Length': `${TEN_MEGABYTES}` }),
    parts: [KILOBYTE],
    isWhole: false,
  },
  {
    label: 'chunked, never finished',
    head: head({ 'Transfer-Encoding': 'chunked' }),
    parts: [chunk(KILOBYTE)],
    isWhole: false,
  },
]

async function refuses(lab: Lab, { head, parts, isWhole, mayBeLostOn }: Body): Promise<string> {
  await lab.configure({ global: { concurrency: 0 } })
  const { admitted } = (await lab.state()).totals
  const connection = new Connection(lab.port)
  const answered = connection.send(head)
  for (const part of parts) {
    if (connection.isOver) break
    if (!connection.socket.write(part)) await Promise.race([once(connection.socket, 'drain'), connection.closed])
  }
  const answer = await answered
  // Who writes on while the connection is closed under it can lose the answer: the host's doing, and nobody's gain.
  if (answer !== undefined || mayBeLostOn !== lab.runtime) {
    expect(answer).toMatchObject({ status: 503, isComplete: true })
    expect(JSON.parse(answer?.body ?? '')).toMatchObject({ reason: 'concurrency', scope: 'global' })
  }
  const again = isWhole ? await within(2000, connection.send(get('/quick/text'))) : undefined
  if (!isWhole) await within(700, connection.closed)
  const isOver = connection.isOver
  connection.fin()
  const { totals } = await lab.state()
  expect(totals.admitted).toBe(admitted)
  await lab.hasExactly(2)
  return `${answer?.status ?? 'lost'}, ${again?.status === 503 ? 'goes on' : isOver ? 'closed' : 'waits for the body'}`
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms)
  })
  const first = await Promise.race([promise, late])
  clearTimeout(timer)
  return first
}

export const unreadBodies: readonly Case[] = BODIES.map((body) => ({
  name: `RUN-5 a refusal leaves the body unread, is sent, and the server lives on: ${body.label}`,
  label: `refused unread: ${body.label}`,
  run: (lab) => refuses(lab, body),
}))
