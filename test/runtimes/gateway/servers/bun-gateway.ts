import { runGateway } from '../gateway.ts'

declare const Bun: {
  serve(options: {
    hostname: string
    port: number
    idleTimeout: number
    fetch: (request: Request) => Response | Promise<Response>
  }): { port: number }
}

// Seconds; the default of 10 would close connections whose answer takes longer (WEB-8).
await runGateway(async (fetch, port) => Bun.serve({ hostname: '127.0.0.1', port, idleTimeout: 60, fetch }).port)
