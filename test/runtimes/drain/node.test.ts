import { once as onceEvent } from 'node:events'
import { type ClientHttp2Session, connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { upgradeWebSocket } from '@hono/node-server'
import { Hono } from 'hono'
import { expect, it } from 'vitest'
import { createAdmission } from '../../../mod.ts'
import { type NodeServeOptions, serveWithAdmission } from '../../../src/host/node.ts'
import { Connection, get, once, post } from '../client.ts'

// Required, not imported: the types of `ws` and the adapter's own of the same thing do not fit under strict options.
const { WebSocket, WebSocketServer } = createRequire(import.meta.url)('ws')

/** Serves the routes of these tests on a free port of this process, listening to no signals. */
async function served(options: NodeServeOptions = {}) {
  const admission = createAdmission()
  const app = new Hono().use(admission.middleware())
  app.get('/slow', async (c) => {
    await sleep(Number(c.req.query('ms') ?? 300))
    return c.text('slow')
  })
  app.post('/upload', async (c) => c.text(await c.req.text()))
  app.get('/large', (c) => c.body('x'.repeat(16 * 1024 * 1024)))
  app.get(
    '/echo',
    upgradeWebSocket(() => ({ onMessage: (event, socket) => socket.send(`${event.data}`) })),
  )
  const windows = { announceMs: 0, finishMs: 2000, closeMs: 2000 }
  return serveWithAdmission(app, admission, { hostname: '127.0.0.1', port: 0, signals: [], ...windows, ...options })
}

it('DRN-5 tells where it listens, and fails where it cannot', async () => {
  const handle = await served()
  expect([handle.hostname, handle.port > 0, handle.phase]).toEqual(['127.0.0.1', true, 'serving'])
  await expect(served({ port: handle.port })).rejects.toThrow(/EADDRINUSE/)
  await expect(served({ announceMs: -1 })).rejects.toThrow(RangeError)
  expect(await handle.shutdown()).toMatchObject({ reason: 'shutdown', outcome: 'drained' })
  expect(await once(handle.port, get('/slow'))).toBeUndefined()
})

it('DRN-5 a socket that was busy when the server closed does not keep it open', async () => {
  const handle = await served()
  const busy = new Connection(handle.port)
  const slow = busy.send(get('/slow'))
  await sleep(50)
  const report = handle.shutdown()
  expect((await slow)?.status).toBe(200)
  expect((await report).totalMs).toBeLessThan(1000)
  await busy.closed
})

it('DRN-5 half a request is waited for until the deadline, and then cut', async () => {
  const handle = await served({ finishMs: 100, closeMs: 200 })
  const half = new Connection(handle.port)
  void half.send('GET /slow HTTP/1.1\r\nHo')
  await sleep(50)
  expect(await handle.shutdown()).toMatchObject({ outcome: 'cut', cut: { active: 0, queued: 0, sockets: 1 } })
})

it('DRN-5 half a request that is completed in time is answered', async () => {
  const handle = await served()
  const half = new Connection(handle.port)
  const answer = half.send('GET /slow HTTP/1.1\r\nHo')
  await sleep(50)
  const report = handle.shutdown()
  await sleep(50)
  half.write('st: 127.0.0.1\r\n\r\n')
  expect((await answer)?.status).toBe(503)
  expect((await report).outcome).toBe('drained')
})

it('RUN-5 asks to leave the connection once the whole request is here, and not before', async () => {
  const handle = await served({ announceMs: 400 })
  const slow = once(handle.port, get('/slow?ms=1500'))
  await sleep(50)
  const report = handle.shutdown()
  const bare = await once(handle.port, get('/slow?ms=1'))
  const whole = await once(handle.port, post('/upload', 'abc'))
  await sleep(500)
  const half = await once(handle.port, get('/upload', { 'Content-Length': '6' }, 'POST'))
  const asked = [bare, whole, half].map((answer) => [answer?.status, /connection: close/i.test(answer?.head ?? '')])
  expect(asked).toEqual([
    [200, true],
    [200, true],
    [503, false],
  ])
  expect((await slow)?.status).toBe(200)
  expect((await report).refused).toBe(1)
})

it('DRN-5 over HTTP/2 streams end, and sessions are told to go', async () => {
  const handle = await served({ server: { createServer: createHttp2Server } })
  const session = connectHttp2(`http://127.0.0.1:${handle.port}`)
  const slow = requestOver(session, '/slow')
  await sleep(50)
  const report = handle.shutdown()
  const refused = await requestOver(session, '/slow')
  expect([refused.status, refused.connection]).toEqual([503, undefined])
  expect((await slow).status).toBe(200)
  expect(await report).toMatchObject({ outcome: 'drained', finished: 1 })
  expect((await report).totalMs).toBeLessThan(1000)
})

it('DRN-5 REL-5 a WebSocket lasts until the deadline, and a new one is refused meanwhile', async () => {
  const websocket = { server: new WebSocketServer({ noServer: true }) }
  const handle = await served({ server: { websocket }, finishMs: 200, closeMs: 300 })
  const url = `ws://127.0.0.1:${handle.port}/echo`
  const socket = new WebSocket(url)
  await onceEvent(socket, 'open')
  const slow = once(handle.port, get('/slow'))
  await sleep(50)
  const report = handle.shutdown()
  const [error] = await onceEvent(new WebSocket(url), 'error')
  expect(`${error}`).toMatch(/503/)
  socket.send('still here')
  const [echo] = await onceEvent(socket, 'message')
  expect(`${echo}`).toBe('still here')
  const closed = onceEvent(socket, 'close')
  expect((await slow)?.status).toBe(200)
  expect(await report).toMatchObject({ outcome: 'cut', cut: { active: 0, queued: 0, sockets: 1 } })
  expect((await report).totalMs).toBeLessThan(1500)
  await closed
})

it('DRN-5 WebSockets that the app closes as closing begins hold nothing up', async () => {
  const server = new WebSocketServer({ noServer: true })
  const handle = await served({
    server: { websocket: { server } },
    onPhase: (phase) => {
      if (phase === 'closing') for (const client of server.clients) client.close(1001)
    },
  })
  const socket = new WebSocket(`ws://127.0.0.1:${handle.port}/echo`)
  await onceEvent(socket, 'open')
  const [[code], report] = await Promise.all([onceEvent(socket, 'close'), handle.shutdown()])
  expect([code, report.outcome]).toEqual([1001, 'drained'])
  expect(report.totalMs).toBeLessThan(1000)
})

it('DRN-5 over TLS a slow reader gets the whole response, and kept sockets are let go', async () => {
  // Without a certificate: who is at the other end does not matter here.
  const anonymous = { ciphers: 'AECDH-AES128-SHA:@SECLEVEL=0', maxVersion: 'TLSv1.2' } as const
  const handle = await served({ server: { createServer: createHttpsServer, serverOptions: anonymous } })
  const target = { port: handle.port, host: '127.0.0.1', rejectUnauthorized: false, ...anonymous }
  let received = 0
  const reader = connectTls(target, () => reader.write(get('/large')))
  reader.on('data', (data) => {
    received += data.length
    reader.pause()
    setTimeout(() => reader.resume(), 1)
  })
  const idle = connectTls(target, () => idle.write(get('/none')))
  await onceEvent(idle, 'data')
  await sleep(100)
  const report = handle.shutdown()
  await onceEvent(reader, 'close')
  expect(received).toBeGreaterThan(16 * 1024 * 1024)
  expect(await report).toMatchObject({ outcome: 'drained' })
})

interface Http2Answer {
  readonly status: unknown
  readonly connection: unknown
}

async function requestOver(session: ClientHttp2Session, path: string): Promise<Http2Answer> {
  const stream = session.request({ ':path': path })
  const [headers] = await onceEvent(stream, 'response')
  stream.resume()
  await onceEvent(stream, 'end')
  return { status: headers[':status'], connection: headers.connection }
}
