import type { Plan } from '../program/plan.ts'
import { quietly } from '../quietly.ts'
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
  /** What a new configuration changed; null for disable, drain, resume and stop. */
  readonly plan: Plan | null
}

export type PublishHook = (event: PublishEvent) => void | Promise<void>

/** Tells each hook of all changes, in the order in which they came. No hook can fail a change or undo one (ADX-6). */
export class Reporter {
  readonly #hooks: Set<PublishHook>
  readonly #untold: News[]
  readonly #state: () => PublicState

  constructor(onPublish: PublishHook | undefined, state: () => PublicState) {
    this.#hooks = new Set(onPublish === undefined ? [] : [onPublish])
    this.#untold = []
    this.#state = state
  }

  /** One more hook, until the function that is returned is called. */
  watch(hook: PublishHook): () => void {
    const own: PublishHook = (event) => hook(event) // so that a hook may be given twice
    this.#hooks.add(own)
    return () => void this.#hooks.delete(own)
  }

  /** Makes a change and reports it, unless it changed nothing. What the change throws comes out, unreported. */
  during<R extends { readonly plan: Plan | null }>({ who }: WriteOptions, change: () => R): R {
    const from = this.#state()
    const result = change()
    const to = this.#state()
    if (!isSame(from, to)) this.#report({ who, from, to, plan: result.plan })
    return result
  }

  #report(event: PublishEvent): void {
    const news = { event, hooks: [...this.#hooks] }
    this.#untold.push(news)
    try {
      // A hook may have made this change: the others hear first of the one that it was told of.
      for (const each of this.#untold) this.#tellRest(each)
    } finally {
      this.#untold.splice(this.#untold.indexOf(news), 1)
    }
  }

  #tellRest({ event, hooks }: News): void {
    for (;;) {
      const hook = hooks.shift()
      if (hook === undefined) return
      if (this.#hooks.has(hook)) void quietly(() => hook(event))
    }
  }
}

/** A change, and the hooks that have not heard of it yet. */
interface News {
  readonly event: PublishEvent
  readonly hooks: PublishHook[]
}

function isSame(from: PublicState, to: PublicState): boolean {
  return (
    from.state === to.state &&
    from.draining === to.draining &&
    from.announcing === to.announcing &&
    from.generation === to.generation
  )
}
