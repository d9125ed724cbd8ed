import { upgradeWebSocket } from 'hono/cloudflare-workers'
import { runtimeApp } from '../app.ts'

const app: ReturnType<typeof runtimeApp> = runtimeApp({ name: 'workerd', upgradeWebSocket })

export { app as default }
