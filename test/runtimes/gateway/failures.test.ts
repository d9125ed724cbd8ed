import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { UpstreamEvent } from '../../../src/gateway.ts'
import { get, once, post } from '../client.ts'
import { buildServers, type Child, freePort, isInstalled, RUNTIMES, startChild } from './child.ts'
import { TOKEN } from './fleet.ts'

const LIFE_MS = 60_000
const AUTHORIZED = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' }

beforeAll(() => buildServers('failures'), 60_000)

const children: Child[] = []
const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) server.close()
  await Promise.all(children.splice(0).map((child) => child.end()))
}, 20_000)

describe.each(RUNTIMES.filter(isInstalled))('a gateway on %s', (runtime) => {
  const start: typeof startChild = async (...args) => {
    const child = await startChild(...args)
    children.push(child)
    return child
  }

  it('GWY-5 never sends a streamed body again that an upstream which died may have read', async () => {
    const delivered: { readonly key: string; readonly by: 'dead' | 'well' }[] = []
    const dead = await listen(dyingServer((key) => delivered.push({ key, by: 'dead' })))
    const well = await listen(
      createHttpServer((request, response) => {
        if (request.url !== '/readyz') delivered.push({ key: request.url ?? '', by: 'well' })
        request.resume().on('end', () => response.end('well'))
      }),
    )
    const port = await freePort()
    await start(runtime, 'gateway', { port, token: TOKEN }, LIFE_MS)
    const events: UpstreamEvent[] = [
      { type: 'register', id: 'dead', url: `http://127.0.0.1:${dead}` },
      { type: 'register', id: 'well', url: `http://127.0.0.1:${well}` },
    ]
    expect((await once(port, post('/gateway/events', JSON.stringify({ events }), AUTHORIZED)))?.status).toBe(200)

    await areHealthy(port, 2)
    const keys = Array.from({ length: 12 }, (_, n) => `/upload/${n}`)
    const statuses = new Map<string, number | undefined>()
    for (const key of keys) {
      const body = '6\r\nfirst \r\n6\r\nsecond\r\n0\r\n\r\n'
      const answer = await once(port, get(key, { 'Transfer-Encoding': 'chunked' }, 'POST') + body)
      statuses.set(key, answer?.status)
      if (answer?.status === 502) expect(JSON.parse(answer.body)).toMatchObject({ reason: 'upstream_failed' })
    }
    await sleep(200) // a second delivery would come by now
    expect(delivered.map(({ key }) => key).sort()).toEqual([...keys].sort())
    expect(delivered.map(({ key }) => statuses.get(key))).toEqual(
      delivered.map(({ by }) => (by === 'dead' ? 502 : 200)),
    )
    expect(new Set(delivered.map(({ by }) => by))).toEqual(new Set(['dead', 'well']))
  })

  it(
    'GWY-7 an instance serves without its gateway, and registers when that comes up',
    async () => {
      const port = await freePort()
      const instancePort = await freePort()
      const gateways = [`http://127.0.0.1:${port}/gateway`]
      const drill = { id: 'orders-1', port: instancePort, gateways, token: TOKEN, announceMs: 0 }
      const instance = await start(runtime, 'instance', drill, LIFE_MS)
      await instance.line('announcing register failed')
      expect(await once(instancePort, get('/quick/alone'))).toMatchObject({ status: 200, body: 'alone' })

      const gateway = await start(runtime, 'gateway', { port, token: TOKEN }, LIFE_MS)
      await comesToServe(port)
      // A gateway that comes back empty is told again.
      await gateway.end()
      await start(runtime, 'gateway', { port, token: TOKEN }, LIFE_MS)
      await comesToServe(port)

      instance.kill('SIGTERM')
      expect(await instance.exited).toBe(0)
      const answer = await once(port, get('/quick/gone'))
      expect(JSON.parse(answer?.body ?? '')).toMatchObject({ status: 503, reason: 'no_upstreams' })
    },
    LIFE_MS,
  )
})

async function areHealthy(port: number, count: number): Promise<void> {
  for (let found = 0; found < count; ) {
    await sleep(20)
    const answer = await once(port, get('/gateway/upstreams', AUTHORIZED))
    found = JSON.parse(answer?.body ?? '{}').healthy?.length ?? 0
  }
}

/** The longest wait between two tries of an instance is 5 s. */
async function comesToServe(port: number): Promise<void> {
  const endMs = performance.now() + 25_000
  for (;;) {
    const answer = await once(port, get('/quick/through'))
    if (answer?.status === 200) return expect(answer.body).toBe('through')
    expect(JSON.parse(answer?.body ?? '{}')).toMatchObject({ status: 503 })
    if (performance.now() > endMs) throw new Error('The instance did not register')
    await sleep(50)
  }
}

/** Answers probes; drops the connection of any other request when the first of its body is here. */
function dyingServer(onDelivery: (key: string) => void): Server {
  return createServer((socket) => {
    let text = ''
    socket.on('error', () => undefined)
    socket.on('data', (data) => {
      text += data.toString('latin1')
      if (text.startsWith('GET /readyz') && text.includes('\r\n\r\n')) {
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
      } else if (text.includes('first')) {
        onDelivery(text.split(' ')[1] ?? '')
        socket.destroy()
      }
    })
  })
}

function listen(server: Server): Promise<number> {
  servers.push(server)
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address: AddressInfo | string | null = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}
