/**
 * One thing for each scope that has one, by contract and method; without both it is the global scope's.
 *
 * In two levels, because a joined id would have to be built and hashed for every scope that an update
 * changes (`update.compile`), and any two ids could be joined alike.
 */
export class ScopeMap<T> {
  #global: T | undefined
  readonly #contracts: Map<string, ContractEntry<T>>
  #size: number

  constructor() {
    this.#global = undefined
    this.#contracts = new Map()
    this.#size = 0
  }

  get size(): number {
    return this.#size
  }

  get(contract: string | undefined, method: string | undefined): T | undefined {
    if (contract === undefined) return this.#global
    const entry = this.#contracts.get(contract)
    return method === undefined ? entry?.own : entry?.methods.get(method)
  }

  set(contract: string | undefined, method: string | undefined, value: T): void {
    if (this.get(contract, method) === undefined) this.#size += 1
    if (contract === undefined) {
      this.#global = value
      return
    }
    let entry = this.#contracts.get(contract)
    if (entry === undefined) {
      entry = { own: undefined, methods: new Map() }
      this.#contracts.set(contract, entry)
    }
    if (method === undefined) entry.own = value
    else entry.methods.set(method, value)
  }

  delete(contract: string | undefined, method: string | undefined): void {
    if (contract === undefined) {
      if (this.#global !== undefined) this.#size -= 1
      this.#global = undefined
      return
    }
    const entry = this.#contracts.get(contract)
    if (entry === undefined) return
    if (method === undefined) {
      if (entry.own !== undefined) this.#size -= 1
      entry.own = undefined
    } else if (entry.methods.delete(method)) {
      this.#size -= 1
    }
    if (entry.own === undefined && entry.methods.size === 0) this.#contracts.delete(contract)
  }

  /** The global one first, then each contract's own before those of its methods. */
  *values(): Generator<T, void, void> {
    if (this.#global !== undefined) yield this.#global
    for (const { own, methods } of this.#contracts.values()) {
      if (own !== undefined) yield own
      yield* methods.values()
    }
  }
}

interface ContractEntry<T> {
  own: T | undefined
  readonly methods: Map<string, T>
}
