/**
 * `serveWithAdmission` for Node, on `@hono/node-server`.
 *
 * ```ts
 * import { createAdmission } from '@sluice/admission'
 * import { serveWithAdmission } from '@sluice/admission/node'
 * import { Hono } from 'hono'
 *
 * const admission = createAdmission({ config: { global: { concurrency: 100 } } })
 * const app = new Hono().route('/', admission.health()).use(admission.middleware())
 * await serveWithAdmission(app, admission, { port: 3000, onReport: (report) => console.log(report) })
 * ```
 *
 * @module
 */
import { createAdaptorServer, type ServerType } from '@hono/node-server'
import { askToLeave, NodePlatform } from './node-platform.ts'
import { ownProcess } from './own-process.ts'
import {
  type AdmissionHolder,
  attend,
  completeOptions,
  type FetchApp,
  type ServeHandle,
  type ServeOptions,
} from './serve.ts'

export type { AdmissionHolder, FetchApp, ServeHandle, ServeOptions } from './serve.ts'
export type { Announcer } from './shutdown.ts'
export type { CallCounts, Phase, ShutdownReport } from './shutdown-report.ts'
export type { PartialWindows, Windows } from './windows.ts'

type AdaptorOptions = Parameters<typeof createAdaptorServer>[0]
type Without<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never

export interface NodeServeOptions extends ServeOptions {
  /** Further options of `@hono/node-server`: `createServer`, `serverOptions` such as `keepAliveTimeout`, `websocket`. */
  readonly server?: Without<AdaptorOptions, 'fetch' | 'port' | 'hostname'> | undefined
}

/**
 * Serves an app, and ends it without losing a request (DRN-5): on SIGTERM or SIGINT it announces, seals, waits until
 * nothing runs and nothing waits, and only then closes the server, whose idle sockets it sweeps until none is left.
 * Resolves when it listens.
 *
 * @throws {RangeError} when a window is no time that a timer can keep.
 * @throws what `listen` fails with, such as `EADDRINUSE`.
 */
export async function serveWithAdmission(
  app: FetchApp,
  admission: AdmissionHolder,
  options: NodeServeOptions = {},
): Promise<ServeHandle<ServerType>> {
  const settings = completeOptions(options)
  const { hostname, port, clock } = settings
  const { core } = admission
  const server = createAdaptorServer({
    ...options.server,
    fetch: (request, env) => (core.ready ? app.fetch(request, env) : askToLeave(env, app.fetch(request, env))),
    ...(hostname === undefined ? {} : { hostname }),
  })
  const platform = new NodePlatform(server, clock)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, hostname, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const address = server.address()
  return attend(
    {
      server,
      platform,
      hostname: typeof address === 'object' && address !== null ? address.address : (hostname ?? ''),
      port: typeof address === 'object' && address !== null ? address.port : port,
      ...ownProcess,
    },
    admission,
    settings,
  )
}
