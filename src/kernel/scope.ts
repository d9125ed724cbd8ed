import { type Refusal, type RefusalReason, refusal } from '../refusal.ts'

/**
 * Where a limit applies: its name, its labels, and the refusals that name it.
 *
 * Refusals in which no time is computed are built once and shared, so that refusing allocates nothing.
 */
export class Scope {
  readonly contract: string | undefined
  readonly method: string | undefined
  readonly selector: string | undefined
  // Made when they are first asked for: most of ten thousand scopes never refuse anybody (`heap.rule`).
  #name: string | undefined
  #refusals: Refusal[] | undefined

  constructor(contract?: string, method?: string, selector?: string) {
    this.#name = undefined
    this.contract = contract
    this.method = method
    this.selector = selector
    this.#refusals = undefined
  }

  /** `global`, `contract:/orders`, `method:/orders POST /orders`; a partition pool adds `#selector` (API-4). */
  get name(): string {
    this.#name ??= scopeName(this.contract, this.method) + (this.selector === undefined ? '' : `#${this.selector}`)
    return this.#name
  }

  refuse(reason: RefusalReason): Refusal {
    this.#refusals ??= []
    const refusals = this.#refusals
    // A few at most; to look one up by its name costs more (`core.refuse`).
    for (let index = 0; index < refusals.length; index += 1) {
      const prebuilt = refusals[index]
      if (prebuilt?.reason === reason) return prebuilt
    }
    const built = Object.freeze(refusal(reason, this.name))
    refusals.push(built)
    return built
  }
}

export function scopeName(contract: string | undefined, method: string | undefined): string {
  if (contract === undefined) return 'global'
  return method === undefined ? `contract:${contract}` : `method:${contract} ${method}`
}
