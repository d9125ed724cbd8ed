/**
 * `serveWithAdmission` for Bun.
 *
 * ```ts
 * import { createAdmission } from '@sluice/admission'
 * import { serveWithAdmission } from '@sluice/admission/bun'
 * import { Hono } from 'hono'
 *
 * const admission = createAdmission({ config: { global: { concurrency: 100 } } })
 * const app = new Hono().route('/', admission.health()).use(admission.middleware())
 * await serveWithAdmission(app, admission, { port: 3000, onReport: (report) => console.log(report) })
 * ```
 *
 * @module
 */
import { BunPlatform, type BunServer } from './bun-platform.ts'
import { leavingFetch } from './connection-close.ts'
import { ownProcess } from './own-process.ts'
import {
  type AdmissionHolder,
  attend,
  completeOptions,
  type FetchApp,
  type ServeHandle,
  type ServeOptions,
} from './serve.ts'

export type { BunServer } from './bun-platform.ts'
export type { AdmissionHolder, FetchApp, ServeHandle, ServeOptions } from './serve.ts'
export type { Announcer } from './shutdown.ts'
export type { CallCounts, Phase, ShutdownReport } from './shutdown-report.ts'
export type { PartialWindows, Windows } from './windows.ts'

export interface BunServeOptions extends ServeOptions {
  /**
   * Further options of `Bun.serve`: `websocket`, `tls`, `maxRequestBodySize`, and `idleTimeout`, which closes the
   * connection of a request that waits or works longer without a byte sent (10 s by default; WEB-8).
   */
  readonly server?: { readonly [option: string]: unknown } | undefined
}

/** What is used of Bun. */
interface BunApi {
  serve(options: { readonly [option: string]: unknown }): BunServer
}
declare const Bun: BunApi

/**
 * Serves an app, and ends it without losing a request (DRN-5): on SIGTERM or SIGINT it announces, seals, waits until
 * nothing runs and nothing waits, and only then stops the server. Resolves when it listens.
 *
 * @throws {RangeError} when a window is no time that a timer can keep.
 * @throws what `Bun.serve` throws, such as `EADDRINUSE`.
 */
export async function serveWithAdmission(
  app: FetchApp,
  admission: AdmissionHolder,
  options: BunServeOptions = {},
): Promise<ServeHandle<BunServer>> {
  const settings = completeOptions(options)
  const { hostname, port, clock } = settings
  const server = Bun.serve({
    ...options.server,
    port,
    ...(hostname === undefined ? {} : { hostname }),
    fetch: leavingFetch<BunServer>(app, admission.core),
  })
  return attend(
    {
      server,
      platform: new BunPlatform(server, clock),
      hostname: server.hostname ?? hostname ?? '',
      port: server.port ?? port,
      ...ownProcess,
    },
    admission,
    settings,
  )
}
