import { upgradeWebSocket } from 'hono/deno'
import { runtimeApp } from '../app.ts'

declare const Deno: {
  serve(
    options: { hostname: string; port: number; onListen: (address: { port: number }) => void },
    handler: (request: Request, info: unknown) => Response | Promise<Response>,
  ): unknown
}

const app = runtimeApp({ name: 'deno', upgradeWebSocket })
Deno.serve({ hostname: '127.0.0.1', port: 0, onListen: ({ port }) => console.log(`port ${port}`) }, (request) =>
  app.fetch(request),
)
