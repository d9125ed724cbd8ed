import { assert } from '../assert.ts'
import { AdmissionConflictError } from '../errors.ts'
import type { Kernel } from '../kernel/kernel.ts'
import type { Program } from '../program/program.ts'
import type { Lifecycle } from './lifecycle.ts'
import type { Retirement } from './retirement.ts'
import type { Prepared } from './update.ts'

/**
 * The current program, and the one step that changes it: source still current? commit what was staged, publish, retire.
 *
 * Every check comes before the first change and no change can fail, so a step happens whole or not at all (PUB-3,
 * PUB-5). Steps are synchronous, so any two have an order and the second one sees the first (PUB-8).
 */
export class Publication {
  readonly #lifecycle: Lifecycle
  readonly #kernel: Kernel
  readonly #retirement: Retirement
  #current: Program | null // null: disabled
  #generation: number // the last one published; only grows, also across disable and enable (PUB-10)

  constructor(lifecycle: Lifecycle, kernel: Kernel, retirement: Retirement) {
    this.#lifecycle = lifecycle
    this.#kernel = kernel
    this.#retirement = retirement
    this.#current = null
    this.#generation = 0
  }

  get current(): Program | null {
    return this.#current
  }

  get generation(): number {
    return this.#generation
  }

  /**
   * disabled → enabled.
   *
   * @throws {AdmissionStateError} in another state.
   * @throws {AdmissionConflictError} when something was published since the candidate was prepared.
   */
  enable({ program, staging }: Prepared): void {
    this.#lifecycle.mustBe('disabled', 'enable')
    // Reading a candidate may run its getters, and those may have published something.
    const source = program.generation - 1
    if (source !== this.#generation) throw new AdmissionConflictError(source, this.#generation)
    this.#kernel.commit(staging)
    this.#publish(program)
    this.#lifecycle.state = 'enabled'
  }

  /**
   * enabled → enabled, from the source that the candidate was prepared from.
   *
   * @throws {AdmissionStateError} when disabled or stopped by now (PUB-12).
   * @throws {AdmissionConflictError} when another generation is current (PUB-4).
   */
  update({ program, staging, difference }: Prepared, source: Program): void {
    this.#lifecycle.mustBe('enabled', 'update')
    if (this.#current !== source) throw new AdmissionConflictError(source.generation, this.#generation)
    this.#kernel.commit(staging, difference.removed)
    this.#publish(program)
    this.#retirement.retire(source)
  }

  /** enabled → disabled; holders and waiters go on under the program they captured (STA-4). */
  disable(): void {
    this.#lifecycle.mustBe('enabled', 'disable')
    assert(this.#current !== null, 'enabled without a program')
    this.#retirement.retire(this.#current)
    this.#current = null
    this.#kernel.unnameAll()
    this.#lifecycle.state = 'disabled'
  }

  #publish(program: Program): void {
    assert(program.generation === this.#generation + 1, 'a program is published out of turn')
    this.#current = program
    this.#generation = program.generation
  }
}
