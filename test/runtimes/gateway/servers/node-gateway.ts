import { serve } from '@hono/node-server'
import { runGateway } from '../gateway.ts'

await runGateway(
  (fetch, port) =>
    new Promise((resolve) => {
      serve({ fetch, port, hostname: '127.0.0.1' }, (address) => resolve(address.port))
    }),
)
