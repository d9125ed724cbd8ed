import type { Hono } from 'hono'
import { runtime } from '../host.ts'

interface Listening {
  readonly hostname: string
  readonly port: number
}
declare const Bun: {
  serve(options: Listening & { readonly idleTimeout: number; readonly fetch: Hono['fetch'] }): { readonly port: number }
}
declare const Deno: {
  serve(options: Listening & { onListen(address: { readonly port: number }): void }, handler: Hono['fetch']): unknown
}

const IDLE_S = 120 // longer than a connection waits for its window
const ANY: Listening = { hostname: '127.0.0.1', port: 0 }

/** Serves an app as the runtime's users do, on a free port. */
export async function listen(app: Hono): Promise<number> {
  if (runtime === 'bun') return Bun.serve({ ...ANY, idleTimeout: IDLE_S, fetch: app.fetch }).port
  if (runtime === 'deno') {
    return new Promise((resolve) => Deno.serve({ ...ANY, onListen: ({ port }) => resolve(port) }, app.fetch))
  }
  const { serve } = await import('@hono/node-server')
  const serverOptions = { keepAliveTimeout: IDLE_S * 1000 }
  return new Promise((resolve) => serve({ ...ANY, fetch: app.fetch, serverOptions }, ({ port }) => resolve(port)))
}
