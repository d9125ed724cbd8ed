import type { Program } from '../program/program.ts'
import { ABORTED, type Refusal } from '../refusal.ts'
import type { Totals } from '../totals.ts'
import type { Admission, Answer } from './admit.ts'
import type { Call } from './call.ts'
import { type Lease, OpenLease } from './lease.ts'

/** The way of one (contract, method), bound once; follows publications by itself. */
export interface BoundRoute {
  /** As {@link AdmissionCore.admit}; `contract` and `method` of the call are not looked at. */
  admit(call?: Call): Answer
}

/** What else may decide about a call than limits. */
export interface Door {
  /** Is there more to a call than being judged: is this announcing, draining or stopped? */
  readonly isGuarded: boolean
  /** Answers every new call; null: calls are judged. */
  readonly closed: Refusal | null
}

const NO_CALL: Call = {}

/** Where a call comes in: it captures the program in force, or is not measured while there is none. */
export class Front {
  /** The current one; null while disabled. Written by the control plane, one load away from a call. */
  program: Program | null
  readonly door: Door
  readonly admission: Admission
  readonly #totals: Totals
  readonly #look: () => void
  #open: Lease
  #slots: number // bindings made

  /** `look` brings a guarded door up to date. */
  constructor(door: Door, admission: Admission, totals: Totals, look: () => void) {
    this.program = null
    this.door = door
    this.admission = admission
    this.#totals = totals
    this.#look = look
    this.#open = new OpenLease(0)
    this.#slots = 0
  }

  /** From now on no limit applies (ADM-11); `generation` is that of the last program. */
  disable(generation: number): void {
    this.program = null
    this.#open = new OpenLease(generation)
  }

  admit(call: Call = NO_CALL): Answer {
    const { program } = this
    if (program === null || this.door.isGuarded) return this.admitGuarded(call, call.contract, call.method)
    return this.admission.admit(program.route(call.contract, call.method), call)
  }

  bind(contract: string | undefined, method: string | undefined): BoundRoute {
    return new FrontRoute(this, contract, method, this.#slots++)
  }

  /** A call while there is more to it than being judged: disabled, announcing, draining or stopped. */
  admitGuarded(call: Call, contract: string | undefined, method: string | undefined): Answer {
    const { program, door } = this
    if (door.isGuarded) {
      this.#look()
      const { closed } = door
      if (closed !== null) return this.#refuse(closed)
    }
    if (program !== null) return this.admission.admit(program.route(contract, method), call)
    // While disabled nothing is asked and nothing is held (ADM-11).
    const { signal } = call
    if (typeof signal === 'object' && signal.aborted) return this.#refuse(ABORTED)
    this.#totals.admitted += 1
    return this.#open
  }

  #refuse(answer: Refusal): Refusal {
    this.#totals.refused[answer.reason] += 1
    return answer
  }
}

class FrontRoute implements BoundRoute {
  readonly #front: Front
  readonly #contract: string | undefined
  readonly #method: string | undefined
  readonly #slot: number

  constructor(front: Front, contract: string | undefined, method: string | undefined, slot: number) {
    this.#front = front
    this.#contract = contract
    this.#method = method
    this.#slot = slot
  }

  admit(call: Call = NO_CALL): Answer {
    const { program, door, admission } = this.#front
    if (program === null || door.isGuarded) return this.#front.admitGuarded(call, this.#contract, this.#method)
    return admission.admit(program.boundRoute(this.#slot, this.#contract, this.#method), call)
  }
}
