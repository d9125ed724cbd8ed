import type { AdmissionCoreOptions } from '../../src/admission-core.ts'
import type { ConfigInput } from '../../src/config/types.ts'
import { type Announcer, type Platform, Shutdown, type ShutdownParts } from '../../src/host/shutdown.ts'
import type { ShutdownReport } from '../../src/host/shutdown-report.ts'
import { type Barrier, barrier, type Setup, setup } from '../support/core.ts'

/** A server that does as the test says, and writes down what it was told. */
export class FakePlatform implements Platform {
  readonly told: string[]
  readonly stopping: Barrier
  /** What a cut would hit. */
  sockets: number

  constructor() {
    this.told = []
    this.stopping = barrier()
    this.sockets = 0
  }

  stop(): Promise<void> {
    this.told.push('stop')
    return this.stopping.promise
  }

  cut(): number {
    this.told.push('cut')
    return this.sockets
  }
}

/** An announcer that answers when the test says. */
export class FakeAnnouncer implements Announcer {
  readonly told: string[]
  readonly answers: { readonly draining: Barrier; readonly offline: Barrier }

  constructor() {
    this.told = []
    this.answers = { draining: barrier(), offline: barrier() }
  }

  start(): void {
    this.told.push('start')
  }

  draining(reason?: string): Promise<void> {
    this.told.push(`draining: ${reason}`)
    return this.answers.draining.promise
  }

  offline(): Promise<void> {
    this.told.push('offline')
    return this.answers.offline.promise
  }
}

export interface WayOut extends Setup {
  readonly platform: FakePlatform
  readonly shutdown: Shutdown
  readonly phases: readonly string[]
  /** What was reported so far. */
  readonly reports: readonly ShutdownReport[]
}

/** A core with 3 s, 5 s and 1 s to go, on a manual clock. */
export function wayOut(
  config: ConfigInput = {},
  parts: Partial<ShutdownParts> = {},
  options: AdmissionCoreOptions = {},
): WayOut {
  const basis = setup(config, options)
  const platform = new FakePlatform()
  const phases: string[] = []
  const reports: ShutdownReport[] = []
  const shutdown = new Shutdown({
    core: basis.core,
    platform,
    clock: basis.clock,
    windows: { announceMs: 3000, finishMs: 5000, closeMs: 1000 },
    onPhase: (phase) => phases.push(phase),
    onReport: (report) => reports.push(report),
    ...parts,
  })
  return { ...basis, platform, shutdown, phases, reports }
}
