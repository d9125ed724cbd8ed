import type { Call } from '../call.ts'
import type { Program } from '../program/program.ts'
import type { Route } from '../program/route.ts'
import { ABORTED, type Refusal } from '../refusal.ts'
import { countRefusal, type Totals } from '../totals.ts'
import type { Admission, Answer } from './admit.ts'
import { type Lease, OpenLease } from './lease.ts'

/** One (contract, method), bound once; follows publications by itself. */
export interface BoundRoute {
  /** As {@link AdmissionCore.admit}; `contract` and `method` of the call are not looked at. */
  admit(call?: Call): Answer
}

/** What else may decide about a call than limits. */
export interface Door {
  /** Answers every new call; null: calls are judged. */
  readonly closed: Refusal | null
}

const NO_CALL: Call = {}

/**
 * Where a call comes in: it captures the program in force, or is not measured while there is none.
 *
 * What a bound route needs is kept for it, from its first call after a change to the next change: its route while calls
 * are judged, or the lease that all get while disabled; neither while the door is guarded. So most calls ask nobody
 * else (`core.immediate`, `core.disabled`), and a program that is no longer current lives on in none of them (PUB-7).
 * All routes are in one list: to forget ten thousand is a few microseconds of a commit (`update.commit`).
 */
export class Front {
  readonly admission: Admission
  readonly totals: Totals
  /** Of each bound route; undefined: it has not been asked for since the last change, or there is none to keep. */
  readonly kept: (Route | undefined)[]
  /** Null: enabled, or guarded. */
  open: Lease | null
  readonly #door: Door
  readonly #look: () => void
  #isGuarded: boolean
  #current: Program | null // null: disabled
  #unmeasured: Lease

  /** `look` brings a guarded door up to date. */
  constructor(door: Door, admission: Admission, totals: Totals, look: () => void) {
    this.admission = admission
    this.totals = totals
    this.kept = []
    this.#door = door
    this.#look = look
    this.#isGuarded = false
    this.#current = null
    this.#unmeasured = new OpenLease(0)
    this.open = this.#unmeasured
  }

  publish(program: Program): void {
    this.#current = program
    this.#changed()
  }

  /** From now on no limit applies (ADM-11); `generation` is that of the last program. */
  disable(generation: number): void {
    this.#current = null
    this.#unmeasured = new OpenLease(generation)
    this.#changed()
  }

  /** Is there more to a call than being judged: is this announcing, draining or stopped? */
  guard(isGuarded: boolean): void {
    this.#isGuarded = isGuarded
    this.#changed()
  }

  bind(contract: string | undefined, method: string | undefined): BoundRoute {
    const place = this.kept.push(undefined) - 1
    return new FrontRoute(this, place, contract, method)
  }

  admit(call: Call = NO_CALL): Answer {
    return this.admitBy(null, call, call.contract, call.method)
  }

  /** `place`: where its route is kept from here on, unless the door is guarded; null: nowhere. */
  admitBy(place: number | null, call: Call, contract: string | undefined, method: string | undefined): Answer {
    if (this.#isGuarded) {
      this.#look()
      const { closed } = this.#door
      if (closed !== null) return this.#refuse(closed)
    }
    const program = this.#current
    if (program !== null) {
      const route = program.route(contract, method)
      if (place !== null && !this.#isGuarded) this.kept[place] = route
      return this.admission.admit(route, call) ?? this.admitOvertaken(contract, method)
    }
    // While disabled nothing is asked and nothing is held (ADM-11).
    const { signal } = call
    if (typeof signal === 'object' && signal.aborted) return this.#refuse(ABORTED)
    this.totals.admitted += 1
    return this.#unmeasured
  }

  admitOvertaken(contract: string | undefined, method: string | undefined): Answer {
    return this.admitBy(null, this.admission.overtaken.take(), contract, method)
  }

  #changed(): void {
    this.admission.overtaken.changes += 1
    this.kept.fill(undefined)
    this.open = this.#current === null && !this.#isGuarded ? this.#unmeasured : null
  }

  #refuse(answer: Refusal): Refusal {
    countRefusal(this.totals, answer.reason)
    return answer
  }
}

class FrontRoute implements BoundRoute {
  readonly #front: Front
  readonly #place: number // in `kept`
  readonly #contract: string | undefined
  readonly #method: string | undefined

  constructor(front: Front, place: number, contract: string | undefined, method: string | undefined) {
    this.#front = front
    this.#place = place
    this.#contract = contract
    this.#method = method
  }

  admit(call: Call = NO_CALL): Answer {
    const front = this.#front
    const route = front.kept[this.#place]
    if (route === undefined) return this.#admitUnkept(call)
    return front.admission.admit(route, call) ?? this.#admitOvertaken()
  }

  // Apart, so that there is room to compile the rest of a permit's way into one piece (`core.immediate`).
  #admitUnkept(call: Call): Answer {
    const { open, totals } = this.#front
    if (open === null || call.signal !== undefined) {
      return this.#front.admitBy(this.#place, call, this.#contract, this.#method)
    }
    totals.admitted += 1
    return open
  }

  #admitOvertaken(): Answer {
    return this.#front.admitOvertaken(this.#contract, this.#method)
  }
}
