import { assert, unreachable } from '../assert.ts'
import { ownerOf } from './consistent-hash.ts'
import type { Upstream } from './upstream.ts'
import type { Upstreams } from './upstreams.ts'

/** How one of several upstreams is selected (GWY-4). */
export type Algorithm = (typeof ALGORITHMS)[number]

export const ALGORITHMS = ['weighted-round-robin', 'least-active', 'power-of-two', 'consistent-hash'] as const

/** Why nothing can be selected: nothing is configured; some upstream is not draining, but cannot serve; all are draining. */
export type UnavailableReason = 'no_upstreams' | 'all_unhealthy' | 'all_draining'

/** What a request asks of the selection. */
export interface SelectionRequest {
  /** For `consistent-hash`; without one, such a request goes by weighted round robin. */
  readonly key?: string | undefined
  /** Id of the upstream that the request is bound to, honoured while that can be selected. */
  readonly pinned?: string | undefined
  /** The upstream that was tried already. */
  readonly exclude?: Upstream | undefined
}

/**
 * Selects an upstream for a request. Candidates are filtered by `Upstreams.candidates` in front of everything here:
 * pins, the only one left, and every algorithm choose among those alone. No fail-open, no retry loop.
 */
export class Selection {
  readonly #upstreams: Upstreams
  readonly #algorithm: Algorithm
  readonly #random: () => number
  // Keyed by the upstream itself, so that one which left, or was replaced, leaves nothing behind.
  readonly #credit: WeakMap<Upstream, number>
  #turn: number

  /** `random` answers in [0, 1) and is drawn by `power-of-two` only. */
  constructor(upstreams: Upstreams, algorithm: Algorithm, random: () => number) {
    this.#upstreams = upstreams
    this.#algorithm = algorithm
    this.#random = random
    this.#credit = new WeakMap()
    this.#turn = 0
  }

  /** An upstream that can be selected at this instant, or undefined. One clock reading; O(upstreams) at most. */
  select(request: SelectionRequest): Upstream | undefined {
    const nowMs = this.#upstreams.nowMs()
    const selectable = this.#upstreams.candidates(nowMs)
    const candidates =
      request.exclude === undefined ? selectable : selectable.filter((upstream) => upstream !== request.exclude)
    if (request.pinned !== undefined) {
      const pinned = candidates.find((upstream) => upstream.id === request.pinned)
      if (pinned !== undefined) return pinned
    }
    if (candidates.length <= 1) return candidates[0]
    switch (this.#algorithm) {
      case 'weighted-round-robin':
        return this.#roundRobin(candidates, nowMs)
      case 'least-active':
        return this.#leastActive(candidates, nowMs)
      case 'power-of-two':
        return this.#powerOfTwo(candidates, nowMs)
      case 'consistent-hash':
        return request.key === undefined ? this.#roundRobin(candidates, nowMs) : ownerOf(request.key, candidates, nowMs)
      default:
        return unreachable(this.#algorithm)
    }
  }

  /** Whether {@link select} would find one now. Takes nobody's turn. */
  hasCandidate(exclude?: Upstream): boolean {
    return this.#upstreams.candidates(this.#upstreams.nowMs()).some((upstream) => upstream !== exclude)
  }

  /** Why {@link select} found nothing. */
  unavailableReason(): UnavailableReason {
    let reason: UnavailableReason = 'no_upstreams'
    for (const upstream of this.#upstreams.all()) {
      if (upstream.draining === null) return 'all_unhealthy'
      reason = 'all_draining'
    }
    return reason
  }

  /** Smooth: everybody earns its weight, the richest is selected and pays for all, so that turns are spread out. */
  #roundRobin(candidates: readonly Upstream[], nowMs: number): Upstream | undefined {
    let richest: Upstream | undefined
    let most = Number.NEGATIVE_INFINITY
    let paid = 0
    for (const candidate of candidates) {
      const weight = candidate.weightAt(nowMs)
      const credit = (this.#credit.get(candidate) ?? 0) + weight
      this.#credit.set(candidate, credit)
      paid += weight
      if (credit > most) {
        most = credit
        richest = candidate
      }
    }
    if (richest !== undefined) this.#credit.set(richest, most - paid)
    return richest
  }

  /** The least load by weight; equals take turns, so that an idle gateway does not warm one instance only. */
  #leastActive(candidates: readonly Upstream[], nowMs: number): Upstream | undefined {
    this.#turn = (this.#turn + 1) % candidates.length
    let idlest: Upstream | undefined
    let least = Number.POSITIVE_INFINITY
    for (let step = 0; step < candidates.length; step += 1) {
      const candidate = candidates[(this.#turn + step) % candidates.length]
      assert(candidate !== undefined, 'a turn outside of the candidates')
      const load = loadOf(candidate, nowMs)
      if (load < least) {
        least = load
        idlest = candidate
      }
    }
    return idlest
  }

  #powerOfTwo(candidates: readonly Upstream[], nowMs: number): Upstream | undefined {
    const first = this.#below(candidates.length)
    const other = this.#below(candidates.length - 1)
    const one = candidates[first]
    const two = candidates[other < first ? other : other + 1]
    assert(one !== undefined && two !== undefined, 'a draw outside of the candidates')
    return loadOf(two, nowMs) < loadOf(one, nowMs) ? two : one
  }

  #below(count: number): number {
    return Math.min(count - 1, Math.floor(this.#random() * count))
  }
}

/** What one more request would make of an upstream's load, by weight. */
function loadOf(upstream: Upstream, nowMs: number): number {
  return (upstream.activeCount + 1) / upstream.weightAt(nowMs)
}
