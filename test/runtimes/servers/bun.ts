import { upgradeWebSocket, websocket } from 'hono/bun'
import { runtimeApp } from '../app.ts'

declare const Bun: {
  serve(options: {
    hostname: string
    port: number
    idleTimeout: number
    websocket: unknown
    fetch: (request: Request, server: unknown) => Response | Promise<Response>
  }): { port: number }
}

const app = runtimeApp({ name: 'bun', upgradeWebSocket })
const { port } = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 60, // seconds; the default of 10 would close connections of requests that wait (WEB-8)
  websocket,
  fetch: (request, server) => app.fetch(request, { server }),
})
console.log(`port ${port}`)
