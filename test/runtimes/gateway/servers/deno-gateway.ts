import { runGateway } from '../gateway.ts'

declare const Deno: {
  serve(
    options: { hostname: string; port: number; onListen: (address: { port: number }) => void },
    handler: (request: Request) => Response | Promise<Response>,
  ): unknown
}

await runGateway(
  (fetch, port) =>
    new Promise((resolve) => {
      Deno.serve({ hostname: '127.0.0.1', port, onListen: (address) => resolve(address.port) }, (request) =>
        fetch(request),
      )
    }),
)
