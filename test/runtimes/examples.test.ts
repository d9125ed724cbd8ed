import { readFileSync, writeFileSync } from 'node:fs'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Connection, get, once, post } from './client.ts'
import { bin, bundle, launch, type Runtime, requireRuntime, root, type ServerProcess } from './servers.ts'

const TOKEN = 'examples'
const AUTHORIZATION = { Authorization: `Bearer ${TOKEN}` }
const TIMEOUT_MS = 30_000

let server: ServerProcess | undefined
afterEach(() => server?.stop())

async function start(command: readonly string[], sockets?: number): Promise<ServerProcess> {
  server = await launch(command, sockets, { ADMIN_TOKEN: TOKEN, PORT: '0' })
  return server
}

beforeAll(async () => {
  await bundle('node', 'examples/serve-node.ts')
  await bundle('workerd', 'examples/workers/isolate.ts', 'build/workers')
  await bundle('workerd', 'examples/workers/durable-object.ts', 'build/workers')
}, TIMEOUT_MS)

describe('a whole server', () => {
  const COMMANDS: readonly (readonly [runtime: Runtime, command: readonly string[]])[] = [
    ['node', [process.execPath, root('build/runtimes/serve-node.js')]],
    ['deno', [bin('deno'), 'run', '-A', '--no-lock', root('examples/serve-deno.ts')]],
    ['bun', [bin('bun'), 'run', root('examples/serve-bun.ts')]],
  ]

  for (const [runtime, command] of COMMANDS) {
    it(
      `DRN-5 the example for ${runtime} serves, bounds slow readers by address, and ends by itself at SIGTERM`,
      async (context) => {
        requireRuntime(context, runtime)
        const example = await start(command)
        const port = example.port()
        expect(await once(port, get('/'))).toMatchObject({ status: 200, body: 'Hello' })
        expect(await once(port, get('/files/2'))).toMatchObject({ status: 200, bodyBytes: 2 * 2 ** 20 })

        const downloads = Array.from({ length: 4 }, () => new Connection(port))
        for (const download of downloads) {
          void download.send(get('/files/100'))
          await new Promise((resolve) => download.socket.once('data', resolve))
          download.socket.pause()
        }
        expect((await once(port, get('/files/1')))?.status).toBe(429)
        expect((await once(port, get('/')))?.status).toBe(200)
        for (const download of downloads) download.reset()

        process.kill(example.pid, 'SIGTERM')
        expect(await example.exited).toBe(0)
      },
      TIMEOUT_MS,
    )
  }
})

describe('workers', () => {
  const sockets = ['isolate', 'first', 'second']
  const command = [
    bin('workerd'),
    'serve',
    '--control-fd=1',
    ...sockets.map((socket) => `--socket-addr=${socket}=127.0.0.1:0`),
    root('examples/workers/workerd.capnp'),
  ]

  const held = async (port: number): Promise<readonly number[]> => {
    const state = JSON.parse((await once(port, get('/admission/state', AUTHORIZATION)))?.body ?? '')
    return [state.active, state.queued.calls]
  }
  const quiet = async (port: number): Promise<void> => {
    await expect.poll(() => held(port), { timeout: 5000 }).toEqual([0, 0])
  }
  /** Every request is served though only two may run; returns how long all of them took. */
  const crowd = async (ports: readonly number[]): Promise<number> => {
    const sinceMs = Date.now()
    const requests = Array.from({ length: 60 }, (_, index) => once(ports[index % ports.length] ?? 0, get('/work')))
    const statuses = (await Promise.all(requests)).map((answer) => answer?.status)
    expect(statuses).toEqual(requests.map(() => 200))
    return Date.now() - sinceMs
  }
  /** Clients that run and wait all crash; nobody is the worse for it. */
  const crashes = async (ports: readonly number[]): Promise<void> => {
    const clients = Array.from({ length: 12 }, (_, index) => new Connection(ports[index % ports.length] ?? 0))
    const answers = clients.map((client) => client.send(get('/work')))
    await expect.poll(async () => (await held(ports[0] ?? 0))[0], { timeout: 5000 }).toBe(2)
    for (const client of clients) client.reset()
    await Promise.all(answers)
    await quiet(ports[0] ?? 0)
  }

  it(
    'RUN-3 one isolate serves a crowd in turn, and clients that crash keep nothing',
    async (context) => {
      requireRuntime(context, 'workerd')
      const port = (await start(command, 3)).port('isolate')
      await crowd([port])
      await crashes([port])
      await crowd([port])
      await quiet(port)
    },
    TIMEOUT_MS,
  )

  it(
    'RUN-3 a Durable Object is one count for two isolates, and clients that crash keep nothing',
    async (context) => {
      requireRuntime(context, 'workerd')
      const workers = await start(command, 3)
      const ports = [workers.port('first'), workers.port('second')]
      // Two at a time, 20 ms each: two counts would need half of it.
      expect(await crowd(ports)).toBeGreaterThanOrEqual(590)
      await crashes(ports)
      await crowd(ports)
      await quiet(workers.port('second'))
    },
    TIMEOUT_MS,
  )

  it(
    'PUB-6 an update over the admin route of a Durable Object reaches every isolate',
    async (context) => {
      requireRuntime(context, 'workerd')
      const workers = await start(command, 3)
      const closed = JSON.stringify({ global: { concurrency: 0 } })
      const fields = { ...AUTHORIZATION, 'Content-Type': 'application/json', 'If-Match': '*' }
      const put = post('/admission/config', closed, fields).replace('POST', 'PUT')
      expect((await once(workers.port('second'), put))?.status).toBe(200)
      for (const socket of ['first', 'second']) {
        const answer = await once(workers.port(socket), get('/work'))
        expect(answer?.status).toBe(503)
        expect(JSON.parse(answer?.body ?? '')).toMatchObject({ reason: 'concurrency', scope: 'global' })
      }
    },
    TIMEOUT_MS,
  )

  it(
    'RUN-3 the configuration for wrangler serves the same object',
    async (context) => {
      requireRuntime(context, 'workerd')
      // As it is, but for the bundle, which takes a bundler otherwise, and the token, which is a secret otherwise.
      const config = readFileSync(root('examples/workers/wrangler.jsonc'), 'utf8')
        .replace('"main": "durable-object.ts"', '"main": "durable-object.js", "no_bundle": true')
        .replace('"name"', `"vars": { "ADMIN_TOKEN": "${TOKEN}" }, "name"`)
      writeFileSync(root('build/workers/wrangler.jsonc'), config)
      const address = '--socket-addr=http=127.0.0.1:0'
      const command = [bin('workerd'), 'serve', '--control-fd=1', address, root('build/workers/wrangler.jsonc')]
      const port = (await start(command)).port()
      await crowd([port])
      await crashes([port])
      await quiet(port)
    },
    TIMEOUT_MS,
  )
})
