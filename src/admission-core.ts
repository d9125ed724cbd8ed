import { Admission, type Answer } from './admission/admit.ts'
import { type BoundRoute, Front } from './admission/front.ts'
import { Keeper } from './admission/keeper.ts'
import { type Lease, PermitLease } from './admission/lease.ts'
import { Queue } from './admission/queue.ts'
import { type Call, registered, type Selector } from './call.ts'
import { type Clock, SystemClock, Timeline } from './clock.ts'
import type { Config, ConfigInput } from './config/types.ts'
import { Draining, type DrainOptions, type StopReport } from './control/draining.ts'
import { Lifecycle, type State } from './control/lifecycle.ts'
import { Publication } from './control/publication.ts'
import { type PublishHook, Reporter, type WriteOptions } from './control/reporter.ts'
import { Retirement } from './control/retirement.ts'
import { type Snapshot, takeSnapshot } from './control/snapshot.ts'
import { type Prepared, planOf, prepareFirst, prepareNext } from './control/update.ts'
import { AdmissionConflictError } from './errors.ts'
import { Kernel } from './kernel/kernel.ts'
import type { Workshop } from './program/compile.ts'
import type { Plan } from './program/plan.ts'
import type { Program } from './program/program.ts'
import { type RateStatus, rateStatusOf } from './program/rate-status.ts'
import { unmeteredProgram } from './program/unmetered.ts'
import { inTurns } from './steps.ts'
import { noTotals, type Totals } from './totals.ts'

export interface AdmissionCoreOptions {
  /** Enabled from the start with this configuration; absent: starts disabled. */
  readonly config?: ConfigInput | undefined
  /** The key selectors that a configuration may name. */
  readonly selectors?: { readonly [name: string]: Selector | undefined } | undefined
  /** Default: the host's monotonic clock. */
  readonly clock?: Clock | undefined
  /**
   * Does every waiter need a timer of its own? True on workerd, where a timer belongs to its request (RUN-3). `look`
   * where a request cannot wake another either (dates before 2024-10-14): it looks every 5 to 50 ms. Default false.
   */
  readonly ownTimers?: boolean | 'look' | undefined
  /** Told of every change, for an audit log. What it throws changes nothing and fails nobody (ADX-6). */
  readonly onPublish?: PublishHook | undefined
}

/** A complete candidate, or a function that makes one from the current configuration. */
export type Candidate = ConfigInput | ((current: Config) => ConfigInput | Promise<ConfigInput>)

export type { BoundRoute }

export interface Published {
  readonly generation: number
  readonly plan: Plan
}

/**
 * Admission control without a framework: decides for each call whether it starts now, waits in the bounded queue, or is
 * refused, and lets every limit change meanwhile.
 *
 * Wires the data plane (`admission/`) and the control plane (`control/`) with one clock; nothing else knows both.
 *
 * @example
 * ```ts
 * const core = new AdmissionCore({ config: { global: { concurrency: 10 } } })
 * const answer = await core.admit()
 * if (answer.kind === 'admitted') {
 *   try { await work() } finally { answer.release() }
 * }
 * ```
 */
export class AdmissionCore {
  readonly #timeline: Timeline
  readonly #kernel: Kernel
  readonly #totals: Totals
  readonly #lifecycle: Lifecycle
  readonly #retirement: Retirement
  readonly #publication: Publication
  readonly #queue: Queue
  readonly #admission: Admission
  readonly #front: Front
  readonly #draining: Draining
  readonly #reporter: Reporter
  readonly #workshop: Workshop
  /** Where calls are counted that no limit applies to (ADM-11). */
  readonly #unmetered: Program

  /**
   * @throws {AdmissionConfigError} when `config` is invalid.
   * @throws {TypeError} when a selector is no function.
   */
  constructor(options: AdmissionCoreOptions = {}) {
    const { clock = new SystemClock(), config, onPublish } = options
    const selectors = registered(options.selectors)
    this.#timeline = new Timeline(clock)
    this.#kernel = new Kernel()
    this.#totals = noTotals()
    this.#lifecycle = new Lifecycle((isGuarded) => this.#front.guard(isGuarded))
    this.#retirement = new Retirement()
    this.#publication = new Publication(this.#lifecycle, this.#kernel, this.#retirement)
    const onLeft = (program: Program): void => this.#left(program)
    this.#queue = new Queue(this.#timeline, this.#kernel.ledger, this.#totals, onLeft, options.ownTimers ?? false)
    this.#admission = new Admission(this.#timeline, this.#kernel.ledger, this.#queue, this.#totals, selectors)
    const keeper = new Keeper(this.#timeline, this.#kernel.ledger, this.#queue, onLeft)
    this.#reporter = new Reporter(onPublish, () => ({
      state: this.state,
      draining: this.draining,
      announcing: this.#lifecycle.drain === 'announcing',
      generation: this.generation,
    }))
    this.#draining = new Draining(this.#timeline, this.#lifecycle, this.#reporter, () => this.#counts())
    this.#front = new Front(this.#lifecycle, this.#admission, this.#totals, () => this.#draining.look())
    this.#workshop = { kernel: this.#kernel, keeper, selectors }
    this.#unmetered = unmeteredProgram(this.#kernel, keeper)
    if (config !== undefined) this.#enable(config)
  }

  get state(): State {
    return this.#lifecycle.state
  }

  /** Has `drain()` been called, and not `resume()`? True while announcing, too. */
  get draining(): boolean {
    return this.#lifecycle.draining
  }

  /** Should balancers send calls here? Off from the moment a drain is announced. */
  get ready(): boolean {
    return this.#lifecycle.ready
  }

  /** Is every new call refused, without being judged: sealed by a drain, or stopped? */
  get closed(): boolean {
    this.#draining.look()
    return this.#lifecycle.closed !== null
  }

  /** The last one published; 0 before the first. */
  get generation(): number {
    return this.#publication.generation
  }

  /** The current configuration with every default filled in, frozen; null while disabled. */
  get config(): Config | null {
    return this.#publication.current?.config ?? null
  }

  /**
   * Decides one call. The answer is a lease, which the caller owes one `release()`; a refusal, which is data; or a
   * promise of one of them, and only if the call waits. The promise never rejects.
   *
   * While disabled every call is admitted by one shared lease that holds nothing (ADM-11).
   *
   * @throws what a selector or another function of the call throws; nothing is held then (PAR-3).
   * @throws {RangeError} when the call comes to queue and its `bytes` are no count.
   */
  admit(call?: Call): Answer {
    return this.#front.admit(call)
  }

  /**
   * Binds a (contract, method), so that its calls look nothing up but once after each publication. For routes that are
   * known when a program starts, not for each call: every binding is kept for good, and told of each publication.
   */
  route(contract?: string, method?: string): BoundRoute {
    return this.#front.bind(contract, method)
  }

  /** Counts a call in `active` that no limit applies to, so that drain and stop wait for it too (ADM-11, DRN-2). */
  track(): Lease {
    this.#unmetered.active += 1
    this.#totals.admitted += 1
    const route = this.#unmetered.route(undefined, undefined)
    route.take(0) // it has no rate
    return new PermitLease(route, 0)
  }

  /**
   * disabled → enabled.
   *
   * @throws {AdmissionStateError} unless disabled.
   * @throws {AdmissionConfigError} with every issue; nothing has changed.
   */
  enable(config: ConfigInput, options: WriteOptions = {}): Published {
    this.#lifecycle.mustBe('disabled', 'enable')
    return this.#reporter.during(options, () => this.#enable(config))
  }

  /**
   * Replaces the whole configuration by a candidate, in one step, seen by the next call. Running calls and waiters go
   * on. A builder gets the current configuration and runs outside of any step; what it throws comes out unchanged. A
   * large candidate is read and prepared over several turns of the event loop, a millisecond or two in each:
   * leave it as it is until the promise settles.
   *
   * The source is `expectedGeneration`, or the generation current at this call; the candidate is never rebased.
   *
   * @throws {AdmissionStateError} unless enabled, now and when it is published (PUB-12).
   * @throws {AdmissionConflictError} when another generation is current by then (PUB-4).
   * @throws {AdmissionConfigError} with every issue (CFG-1).
   * @throws {UnsupportedTransitionError} when rates or partitions would change (PUB-9).
   */
  async update(
    candidate: Candidate,
    options: WriteOptions & { readonly expectedGeneration?: number | undefined } = {},
  ): Promise<Published> {
    this.#lifecycle.mustBe('enabled', 'update')
    const source = this.#publication.current
    const expected = options.expectedGeneration ?? this.generation
    if (source === null || source.generation !== expected) throw new AdmissionConflictError(expected, this.generation)
    const built = typeof candidate === 'function' ? await candidate(source.config) : candidate
    const preparing = inTurns(prepareNext(built, source, this.#workshop))
    const prepared = preparing instanceof Promise ? await preparing : preparing
    return this.#reporter.during(options, () => {
      this.#publication.update(prepared, source)
      return this.#published(prepared)
    })
  }

  /** enabled → disabled: new calls are not limited; holders and waiters go on as they were (STA-4). */
  disable(options: WriteOptions = {}): void {
    this.#lifecycle.mustBe('enabled', 'disable')
    this.#reporter.during(options, () => {
      this.#publication.disable()
      this.#front.disable(this.generation)
      this.#purge()
      return { plan: null }
    })
  }

  /**
   * What an update would do, or enabling it while disabled; refusals are data. Changes nothing (PUB-11).
   *
   * @throws {AdmissionConfigError} with every issue.
   */
  plan(candidate: ConfigInput): Plan {
    return planOf(candidate, this.#publication.current, this.#workshop)
  }

  /**
   * Alive, but taking no new work: new calls are refused (`draining`), what runs or waits finishes. With `announceMs`
   * only readiness is off at first, and calls are refused after that time. Only {@link resume} ends it.
   *
   * @throws {AdmissionStateError} after stop.
   */
  drain(options: DrainOptions & WriteOptions = {}): void {
    this.#lifecycle.mustRun('drain')
    this.#reporter.during(options, () => this.#draining.drain(options))
  }

  /** @throws {AdmissionStateError} after stop. */
  resume(options: WriteOptions = {}): void {
    this.#lifecycle.mustRun('resume')
    this.#reporter.during(options, () => this.#draining.resume())
  }

  /**
   * For good: every writer fails from now on, new calls and waiters are refused (`stopped`), what runs finishes.
   * Resolves when nothing runs any more, or `graceMs` from now with what is left; without `graceMs` it waits as long as
   * it takes. Again: the same promise; a nearer deadline counts, a later one does not (DRN-3, DRN-7).
   */
  stop(options: { readonly graceMs?: number | undefined } = {}): Promise<StopReport> {
    if (this.state !== 'stopped') {
      this.#reporter.during({}, () => {
        this.#queue.refuseAll(this.#draining.seal(options.graceMs))
        return { plan: null }
      })
    }
    return this.#draining.stop(options.graceMs)
  }

  /** Resolves when nothing runs and nothing waits; at once if that is so now. Driven by events, never by polling. */
  whenIdle(): Promise<void> {
    return this.#draining.whenIdle()
  }

  /** The most restrictive rate of a route's scopes, for `RateLimit` fields; undefined without a rate (WEB-4). */
  rateStatus(contract?: string, method?: string): RateStatus | undefined {
    const program = this.#publication.current
    return program === null ? undefined : rateStatusOf(program.route(contract, method), this.#timeline.nowMs())
  }

  /** Tells one more hook of every change, like `onPublish`, until the function that is returned is called (ADX-5). */
  watch(hook: PublishHook): () => void {
    return this.#reporter.watch(hook)
  }

  snapshot(): Snapshot {
    this.#draining.look()
    const nowMs = this.#timeline.nowMs()
    if (!this.#queue.isEmpty) this.#queue.settle(nowMs)
    return takeSnapshot(
      {
        lifecycle: this.#lifecycle,
        kernel: this.#kernel,
        totals: this.#totals,
        current: this.#publication.current,
        generation: this.generation,
        retired: this.#retirement.programs,
        active: this.#counts().active,
        oldestWaitMs: this.#queue.oldestWaitMs(nowMs),
      },
      nowMs,
    )
  }

  #enable(config: ConfigInput): Published {
    const prepared = prepareFirst(config, this.generation + 1, this.#workshop)
    this.#publication.enable(prepared)
    return this.#published(prepared)
  }

  /** The rest of a commit: calls see the program, and whoever a larger limit made room for starts. */
  #published({ program, staging, difference }: Prepared): Published {
    this.#front.publish(program)
    for (const { state } of staging.limits) this.#queue.resized(state)
    for (const { state } of staging.openBodies) {
      for (const key of state.keys()) this.#queue.resized(key)
    }
    if (!this.#queue.isEmpty) this.#queue.settle(this.#timeline.nowMs())
    this.#purge()
    return { generation: program.generation, plan: difference.plan }
  }

  #purge(): void {
    if (this.#kernel.hasUnnamed) this.#kernel.purge(this.#timeline.nowMs())
  }

  /** The last call of a program may have ended. */
  #left(program: Program): void {
    if (this.#retirement.reclaim(program)) this.#purge()
    this.#draining.progress()
  }

  #counts(): { active: number; queued: number } {
    let active = this.#unmetered.active + (this.#publication.current?.active ?? 0)
    for (const program of this.#retirement.programs) active += program.active
    return { active, queued: this.#kernel.ledger.calls }
  }
}
