import type { Plan } from '../program/plan.ts'
import type { State } from './lifecycle.ts'

export interface WriteOptions {
  /** Who asks, for the audit log; passed on as it is. */
  readonly who?: unknown
}

/** The state that operators see and change. */
export interface PublicState {
  readonly state: State
  readonly draining: boolean
  /** Draining has been announced, but calls are still admitted. */
  readonly announcing: boolean
  readonly generation: number
}

/** One change, after it happened (ADX-5). */
export interface PublishEvent {
  readonly who: unknown
  readonly from: PublicState
  readonly to: PublicState
  /** What a new configuration changed; null for the other writers. */
  readonly plan: Plan | null
}

/** Tells the audit hook of changes. The hook can neither fail a change nor undo one (ADX-6). */
export class Reporter {
  readonly #onPublish: ((event: PublishEvent) => void | Promise<void>) | undefined
  readonly #state: () => PublicState

  constructor(onPublish: ((event: PublishEvent) => void | Promise<void>) | undefined, state: () => PublicState) {
    this.#onPublish = onPublish
    this.#state = state
  }

  /** Makes a change and reports it, unless it changed nothing. What the change throws comes out, unreported. */
  during<R extends { readonly plan: Plan | null }>({ who }: WriteOptions, change: () => R): R {
    const from = this.#state()
    const result = change()
    const to = this.#state()
    if (!isSame(from, to) && this.#onPublish !== undefined) this.#report({ who, from, to, plan: result.plan })
    return result
  }

  #report(event: PublishEvent): void {
    const report = async (): Promise<void> => this.#onPublish?.(event)
    report().catch(() => undefined)
  }
}

function isSame(from: PublicState, to: PublicState): boolean {
  return (
    from.state === to.state &&
    from.draining === to.draining &&
    from.announcing === to.announcing &&
    from.generation === to.generation
  )
}
