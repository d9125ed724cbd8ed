import { assert, unreachable } from '../assert.ts'
import { type Clock, Timeline } from '../clock.ts'
import { UpstreamConflictError, UpstreamRuleError } from './errors.ts'
import { isStranger, judgeBatch, tooManyUpstreams } from './event-rules.ts'
import { type DrainingMarker, type Upstream, type UpstreamPolicy, UpstreamState } from './upstream.ts'
import { parseEvents, parseUpstreams, type UpstreamEvent, type UpstreamInput } from './upstream-events.ts'

/** The answer to one event of a batch. */
export interface AppliedEvent {
  readonly type: UpstreamEvent['type']
  readonly id: string
  /** Whether the upstream is draining now. */
  readonly draining: boolean
  /** Requests on it whose body has not ended: 0 tells a draining instance that nothing is under way to it. */
  readonly active: number
}

export interface EventsAnswer {
  readonly revision: number
  readonly events: readonly AppliedEvent[]
}

/**
 * The set of upstreams and what is known of each (GWY-1, GWY-2).
 *
 * ```
 *             register, sync                     offline, sync without it
 *   (absent) ────────────────▶  configured  ────────────────────────────▶ (gone)
 *
 *   lease     live ──expire()──▶ expired            register ▶ live; sync leaves it; heartbeat extends a live one only
 *   health    unknown ──rise──▶ healthy ⇄fall, rise⇄ unhealthy ◀──connect errors── any      register, end of ejection ▶ unknown
 *   draining  no ──draining, sync with marker──▶ since, why       register, sync without marker ▶ no; nothing else
 * ```
 *
 * Every change is one synchronous step that is judged as a whole before any of it is applied, and no selection sees
 * the middle of it (GWY-3). `revision` counts changes to what is configured (members, settings, markers, leases);
 * heartbeats and health do not move it, so that an operator's `If-Match` survives them.
 */
export class Upstreams {
  readonly #timeline: Timeline
  readonly #policy: UpstreamPolicy
  readonly #byId: Map<string, UpstreamState>
  readonly #listeners: Set<() => void>
  #revision: number
  #candidates: readonly Upstream[] | null // null: something changed since they were last asked for
  #nextDueMs: number // no lease and no ejection ends before this
  /** Whether probes run and so decide when an ejection ends. */
  #isProbed: boolean

  constructor(policy: UpstreamPolicy, clock: Clock) {
    this.#timeline = new Timeline(clock)
    this.#policy = policy
    this.#byId = new Map()
    this.#listeners = new Set()
    this.#revision = 0
    this.#candidates = null
    this.#nextDueMs = Number.POSITIVE_INFINITY
    this.#isProbed = false
  }

  get revision(): number {
    return this.#revision
  }

  /** Milliseconds on the gateway's clock; whole, and never back. */
  nowMs(): number {
    return this.#timeline.nowMs()
  }

  /** When {@link expire} next has something to do, or earlier; Infinity is never. */
  get nextDueMs(): number {
    return this.#nextDueMs
  }

  get(id: string): Upstream | undefined {
    return this.#byId.get(id)
  }

  all(): IterableIterator<Upstream> {
    return this.#byId.values()
  }

  /** Calls `listener` after each change, within its step; answers how to end that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Live, not draining, healthy enough (GWY-3): the one filter, in front of every way to select (GWY-4).
   * The same array until something changes. O(1), O(upstreams) after a change.
   */
  candidates(nowMs: number): readonly Upstream[] {
    if (nowMs >= this.#nextDueMs) this.expire(nowMs)
    this.#candidates ??= Object.freeze([...this.#byId.values()].filter((upstream) => upstream.isSelectable))
    return this.#candidates
  }

  /**
   * Applies a batch of {@link UpstreamEvent}, all or nothing. O(events), O(upstreams) at the bound.
   *
   * @throws {GatewayInputError} when an event is malformed or its type unknown (GWY-1).
   * @throws {UpstreamRuleError} when an event does not fit (GWY-2).
   */
  apply(input: unknown): EventsAnswer {
    const events = parseEvents(input)
    const nowMs = this.#timeline.nowMs()
    this.expire(nowMs)
    for (const id of judgeBatch(events, this.#byId, this.#policy.maxUpstreams)) this.#byId.delete(id)
    let isChange = false
    const applied = events.map((event): AppliedEvent => {
      const before = this.#byId.get(event.id)
      if (this.#applyOne(event, before, nowMs)) isChange = true
      const upstream = this.#byId.get(event.id)
      const active = (upstream ?? before)?.activeCount ?? 0
      return { type: event.type, id: event.id, draining: upstream?.draining != null, active }
    })
    if (isChange) this.#changed(true)
    return { revision: this.#revision, events: applied }
  }

  /**
   * Replaces the whole set by these {@link UpstreamInput} (GWY-8): what it omits is gone; members with the same URL and generation keep lease, health
   * and counts. A member without the marker is not draining afterwards. New members need no heartbeats until their first.
   *
   * @throws {GatewayInputError} when the set is malformed.
   * @throws {UpstreamRuleError} when a generation is older than the one known, or the set is too large.
   * @throws {UpstreamConflictError} when `expectedRevision` is given and not current.
   */
  sync(input: unknown, expectedRevision?: number): number {
    const desired = parseUpstreams(input)
    const nowMs = this.#timeline.nowMs()
    this.expire(nowMs)
    if (expectedRevision !== undefined && expectedRevision !== this.#revision) {
      throw new UpstreamConflictError(expectedRevision, this.#revision)
    }
    for (const [index, { id, generation }] of desired.entries()) {
      if (index >= this.#policy.maxUpstreams) throw tooManyUpstreams(id, index, this.#policy.maxUpstreams)
      const known = this.#byId.get(id)
      if (known !== undefined && generation !== undefined && generation < known.generation) {
        const why = `generation ${generation} is older than ${known.generation}`
        throw new UpstreamRuleError('stale_generation', id, index, `Cannot replace "${id}": ${why}`)
      }
    }
    this.#replace(desired, nowMs)
    return this.#revision
  }

  /** The set to begin with. Reads no clock (RUN-1): it counts as there since the clock's origin. Throws like {@link sync}. */
  seed(input: unknown): void {
    assert(this.#byId.size === 0, 'seed() of upstreams that are in use')
    const desired = parseUpstreams(input)
    const first = desired[this.#policy.maxUpstreams]
    if (first !== undefined) throw tooManyUpstreams(first.id, this.#policy.maxUpstreams, this.#policy.maxUpstreams)
    this.#replace(desired, 0)
  }

  /** Ends the leases and ejections that are over. O(1) while none is due. */
  expire(nowMs: number): void {
    if (nowMs < this.#nextDueMs) return
    let hasExpired = false
    let hasReturned = false
    this.#nextDueMs = Number.POSITIVE_INFINITY
    for (const upstream of this.#byId.values()) {
      if (upstream.expire(nowMs)) hasExpired = true
      if (upstream.readmit(nowMs)) hasReturned = true
      this.#due(upstream)
    }
    if (hasExpired || hasReturned) this.#changed(hasExpired)
  }

  /** Counts a request on an upstream that was just selected; the caller owes exactly one call of the answer's. */
  begin(selected: Upstream): () => void {
    const upstream = this.#byId.get(selected.id)
    assert(upstream === selected, 'begin() of an upstream that was not selected in this turn')
    upstream.activeCount += 1
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      // The object, not the id: what an old process still serves is not its replacement's.
      upstream.activeCount -= 1
    }
  }

  /**
   * Probes run from now on, or no longer. While they do, whatever is unhealthy returns by their success only; once
   * nobody probes it, it returns after `ejectMs`, or it would never (GWY-5).
   */
  setProbed(isProbed: boolean): void {
    const nowMs = this.#timeline.nowMs()
    this.expire(nowMs)
    this.#isProbed = isProbed
    for (const upstream of this.#byId.values()) {
      upstream.setProbed(isProbed, nowMs)
      this.#due(upstream)
    }
  }

  /** Takes in a probe that began in `epoch`; one of an older epoch or of a draining upstream is discarded (GWY-3). */
  recordProbe(probed: Upstream, epoch: number, isOk: boolean): void {
    const upstream = this.#byId.get(probed.id)
    if (upstream !== probed || upstream.epoch !== epoch || upstream.draining !== null) return
    if (upstream.probed(isOk, this.#timeline.nowMs())) this.#changed(false)
  }

  /** A connection could not be made. Enough in a row eject the upstream (GWY-5). */
  recordConnectError(tried: Upstream): void {
    const upstream = this.#byId.get(tried.id)
    if (upstream !== tried || !upstream.connectFailed(this.#timeline.nowMs(), this.#isProbed)) return
    this.#due(upstream)
    this.#changed(false)
  }

  /** A response came: connect errors are no longer in a row. */
  recordConnected(tried: Upstream): void {
    const upstream = this.#byId.get(tried.id)
    if (upstream === tried) upstream.connectErrors = 0
  }

  /** Applies an event that was judged; answers whether what is configured changed. */
  #applyOne(event: UpstreamEvent, upstream: UpstreamState | undefined, nowMs: number): boolean {
    switch (event.type) {
      case 'register': {
        const generation = event.generation ?? upstream?.generation ?? 0
        const fresh = this.#sameOrNew(event, generation, upstream, nowMs)
        fresh.register(event, nowMs)
        this.#due(fresh)
        this.#byId.set(event.id, fresh)
        return true
      }
      case 'heartbeat':
        assert(upstream !== undefined, 'a heartbeat of an unknown upstream was let through')
        upstream.extendLease(nowMs)
        this.#due(upstream)
        return upstream.adjust(event)
      case 'draining': {
        assert(upstream !== undefined, 'draining of an unknown upstream was let through')
        return upstream.drain(marker(nowMs, event.reason))
      }
      case 'offline':
        if (upstream === undefined || isStranger(event, upstream)) return false
        return this.#byId.delete(event.id)
      default:
        return unreachable(event)
    }
  }

  #replace(desired: readonly UpstreamInput[], nowMs: number): void {
    const former = new Map(this.#byId)
    this.#byId.clear()
    for (const one of desired) this.#byId.set(one.id, this.#synced(one, former.get(one.id), nowMs))
    this.#changed(true)
  }

  #synced(desired: UpstreamInput, former: UpstreamState | undefined, nowMs: number): UpstreamState {
    const upstream = this.#sameOrNew(desired, desired.generation ?? former?.generation ?? 0, former, nowMs)
    upstream.configure(desired)
    const wish = desired.draining ?? false
    if (wish === false) upstream.undrain()
    else upstream.drain(former?.draining ?? marker(nowMs, wish === true ? undefined : wish.reason))
    return upstream
  }

  /** A newer process, or one elsewhere, gets a count of its own: what the old one still serves is not its. */
  #sameOrNew(
    { id, url }: { readonly id: string; readonly url: string },
    generation: number,
    former: UpstreamState | undefined,
    nowMs: number,
  ): UpstreamState {
    if (former?.url === url && former.generation === generation) return former
    return new UpstreamState(id, url, generation, nowMs, this.#policy)
  }

  #due(upstream: UpstreamState): void {
    const leaseUntilMs = upstream.lease === 'live' ? upstream.leaseUntilMs : Number.POSITIVE_INFINITY
    this.#nextDueMs = Math.min(this.#nextDueMs, leaseUntilMs, upstream.ejectedUntilMs)
  }

  #changed(isConfigured: boolean): void {
    if (isConfigured) this.#revision += 1
    this.#candidates = null
    for (const listener of this.#listeners) listener()
  }
}

function marker(sinceMs: number, reason: string | undefined): DrainingMarker {
  return reason === undefined ? { sinceMs } : { sinceMs, reason }
}
