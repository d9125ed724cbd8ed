import { type Refusal, type RefusalReason, refusal } from '../refusal.ts'

/**
 * Where a limit applies: its name, its labels, and the refusals that name it.
 *
 * Refusals in which no time is computed are built once and shared, so that refusing allocates nothing.
 */
export class Scope {
  /** `global`, `contract:/orders`, `method:/orders POST /orders`; a partition pool adds `#selector` (API-4). */
  readonly name: string
  readonly contract: string | undefined
  readonly method: string | undefined
  readonly selector: string | undefined
  readonly #refusals: { [reason in RefusalReason]?: Refusal }

  constructor(contract?: string, method?: string, selector?: string) {
    this.name = scopeName(contract, method) + (selector === undefined ? '' : `#${selector}`)
    this.contract = contract
    this.method = method
    this.selector = selector
    this.#refusals = {}
  }

  refuse(reason: RefusalReason): Refusal {
    const prebuilt = this.#refusals[reason]
    if (prebuilt !== undefined) return prebuilt
    const built = Object.freeze(refusal(reason, this.name))
    this.#refusals[reason] = built
    return built
  }
}

export function scopeName(contract: string | undefined, method: string | undefined): string {
  if (contract === undefined) return 'global'
  return method === undefined ? `contract:${contract}` : `method:${contract} ${method}`
}
