import { type Env, Hono } from 'hono'
import { expect } from 'vitest'
import { type Admission, type AdmissionOptions, createAdmission } from '../../src/hono/create-admission.ts'
import type { AdmissionVariables } from '../../src/hono/middleware.ts'
import { ManualClock } from '../../src/manual-clock.ts'

export interface Served {
  readonly admission: Admission
  readonly clock: ManualClock
  readonly app: Hono<{ Variables: AdmissionVariables }>
}

/** An admission on a manual clock, and an app whose every route is below its middleware. */
export function serve<E extends Env = Env>(options: AdmissionOptions<E> = {}): Served {
  const clock = new ManualClock()
  const admission = createAdmission<E>({ clock, ...options })
  const app = new Hono<{ Variables: AdmissionVariables }>()
  app.use(admission.middleware())
  return { admission, clock, app }
}

/** A handler that answers when it is told to, and counts how often it was started. */
export class Gate {
  started: number
  readonly #open: (() => void)[]

  constructor() {
    this.started = 0
    this.#open = []
  }

  /** Waits for {@link open}. */
  async pass(): Promise<void> {
    this.started += 1
    await new Promise<void>((resolve) => this.#open.push(resolve))
  }

  /** Lets the longest held go. */
  open(): void {
    this.#open.shift()?.()
  }
}

/** Lets promises settle; time stands still. */
export async function flush(): Promise<void> {
  for (let turn = 0; turn < 30; turn += 1) await Promise.resolve()
}

/** Nothing runs, nothing waits, no timer is left: the last line of a test. */
export function expectQuiet({ admission, clock }: Pick<Served, 'admission' | 'clock'>): void {
  const { active, queued, scopes } = admission.core.snapshot()
  expect({ active, calls: queued.calls, bytes: queued.bytes }).toEqual({ active: 0, calls: 0, bytes: 0 })
  for (const scope of scopes) expect(scope).toMatchObject({ active: 0, waiting: 0 })
  expect(clock.pending).toBe(0)
}

/** A value that the types forbid, as plain JavaScript would pass it. */
export function untyped(value: unknown): ReturnType<typeof JSON.parse> {
  return value
}

/** A response's JSON, for tests that then look at a member or two. */
export async function jsonOf(response: Response): Promise<Record<string, unknown>> {
  return Object.assign(Object.create(null), await response.json())
}
