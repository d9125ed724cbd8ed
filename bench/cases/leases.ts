import type { Answer } from '../../src/admission/admit.ts'
import type { Lease } from '../../src/admission/lease.ts'
import { AdmissionCore, type BoundRoute } from '../../src/admission-core.ts'
import type { ConfigInput } from '../../src/config/types.ts'
import type { Exact, Subject } from '../engine.ts'
import { type CountingClock, StillClock } from '../still-clock.ts'
import { CONTRACT, METHOD, OUTSTANDING } from './limits.ts'

/** The least that a caller must do to see that it may start: only a lease can be released. */
export function admitted(answer: Answer): Lease {
  if (!('release' in answer)) throw new Error(`Not admitted at once: ${answer}`)
  return answer
}

/** Permits of one route with this configuration, enabled from the start. */
export function immediate(config: ConfigInput, exact: Exact): Subject {
  const clock = new StillClock()
  const core = new AdmissionCore({ clock, config })
  return rotatingLeases(core, core.route(CONTRACT, METHOD), clock, exact)
}

/** An operation releases the oldest of 64 leases and takes a new one, so that a lease cannot stay on the stack. */
export function rotatingLeases(core: AdmissionCore, bound: BoundRoute, clock: CountingClock, exact: Exact): Subject {
  const leases: Lease[] = Array.from({ length: OUTSTANDING }, () => admitted(bound.admit()))
  let at = 0
  return {
    clock,
    exact,
    run(n) {
      let count = 0
      for (let left = n; left > 0; left -= 1) {
        leases[at]?.release()
        leases[at] = admitted(bound.admit())
        at = (at + 1) & (OUTSTANDING - 1)
        count += 1
      }
      return count
    },
    expected: (n) => n,
    verify: () => expectActive(core, core.state === 'disabled' ? 0 : OUTSTANDING),
  }
}

export function expectActive(core: AdmissionCore, expected: number): void {
  const { active, queued } = core.snapshot()
  if (active !== expected || queued.calls > 0) {
    throw new Error(`${active} calls are active and ${queued.calls} queued, expected ${expected} and 0`)
  }
}
