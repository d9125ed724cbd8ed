import { createRequire } from 'node:module'
import { serve, upgradeWebSocket } from '@hono/node-server'
import { runtimeApp } from '../app.ts'

// Required, not imported: the types of `ws` and the adapter's own of the same thing do not fit under strict options.
const { WebSocketServer } = createRequire(import.meta.url)('ws')

const app = runtimeApp({ name: 'node', upgradeWebSocket })
const websocket = { server: new WebSocketServer({ noServer: true }) }
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0, websocket }, ({ port }) => console.log(`port ${port}`))
