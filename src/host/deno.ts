/**
 * `serveWithAdmission` for Deno.
 *
 * ```ts
 * import { createAdmission } from '@sluice/admission'
 * import { serveWithAdmission } from '@sluice/admission/deno'
 * import { Hono } from 'hono'
 *
 * const admission = createAdmission({ config: { global: { concurrency: 100 } } })
 * const app = new Hono().route('/', admission.health()).use(admission.middleware())
 * await serveWithAdmission(app, admission, { port: 3000, onReport: (report) => console.log(report) })
 * ```
 *
 * @module
 */
import { leavingFetch } from './connection-close.ts'
import { type DenoHttpServer, DenoPlatform, type DenoRequestInfo } from './deno-platform.ts'
import {
  type AdmissionHolder,
  attend,
  completeOptions,
  type FetchApp,
  type ServeHandle,
  type ServeOptions,
} from './serve.ts'

export type { DenoHttpServer } from './deno-platform.ts'
export type { AdmissionHolder, FetchApp, ServeHandle, ServeOptions } from './serve.ts'
export type { Announcer } from './shutdown.ts'
export type { CallCounts, Phase, ShutdownReport } from './shutdown-report.ts'
export type { PartialWindows, Windows } from './windows.ts'

export interface DenoServeOptions extends ServeOptions {
  /** Further options of `Deno.serve`, such as `cert` and `key`, `onError`, `onListen`. */
  readonly server?: { readonly [option: string]: unknown } | undefined
}

/** What is used of Deno. */
interface DenoApi {
  serve(
    options: { readonly [option: string]: unknown },
    handler: (request: Request, info: DenoRequestInfo) => Response | Promise<Response>,
  ): DenoHttpServer
  addSignalListener(signal: string, fn: () => void): void
  removeSignalListener(signal: string, fn: () => void): void
  exit(code: number): void
}
declare const Deno: DenoApi

/**
 * Serves an app, and ends it without losing a request (DRN-5): on SIGTERM or SIGINT it announces, seals, waits until
 * nothing runs and nothing waits, and only then shuts the server down, which breaks uploads if done earlier. Resolves
 * when it listens.
 *
 * @throws {RangeError} when a window is no time that a timer can keep.
 * @throws what `Deno.serve` throws, such as `Deno.errors.AddrInUse`.
 */
export async function serveWithAdmission(
  app: FetchApp,
  admission: AdmissionHolder,
  options: DenoServeOptions = {},
): Promise<ServeHandle<DenoHttpServer>> {
  const settings = completeOptions(options)
  const { hostname, port, clock } = settings
  const platform = new DenoPlatform(clock)
  const server = Deno.serve(
    {
      onListen: () => undefined,
      ...options.server,
      port,
      ...(hostname === undefined ? {} : { hostname }),
      signal: platform.signal,
    },
    platform.counted(leavingFetch(app, admission.core)),
  )
  platform.server = server
  // Deno 2.9 keeps the process until a cleared timer was due if a request set the first one ever.
  clock.callAt(clock.nowMs(), () => undefined)()
  return attend(
    {
      server,
      platform,
      hostname: server.addr.hostname,
      port: server.addr.port,
      onSignal(signal, fn) {
        Deno.addSignalListener(signal, fn)
        return () => Deno.removeSignalListener(signal, fn)
      },
      exit: (code) => Deno.exit(code),
    },
    admission,
    settings,
  )
}
