/**
 * What an operator can get wrong, one class a kind. Refusals of calls are data and never errors (`refusal.ts`).
 */

/** One thing that is wrong with a configuration. */
export interface ConfigIssue {
  /** JSON Pointer (RFC 6901) into the candidate; `''` is the whole document. */
  readonly pointer: string
  readonly message: string
}

/** The candidate is not a valid configuration; nothing has changed (CFG-1). Lists every issue. */
export class AdmissionConfigError extends Error {
  readonly code = 'ADMISSION_CONFIG'
  readonly issues: readonly ConfigIssue[]
  constructor(issues: readonly ConfigIssue[]) {
    const shown = issues.slice(0, 5).map((issue) => `${issue.pointer || '(document)'}: ${issue.message}`)
    const more = issues.length > shown.length ? ` (+${issues.length - shown.length} more)` : ''
    super(`Invalid admission configuration: ${shown.join('; ')}${more}`)
    this.name = 'AdmissionConfigError'
    this.issues = issues
  }
}

/** The action is not possible in this state: enable while enabled, anything after stop (PUB-1, PUB-12). */
export class AdmissionStateError extends Error {
  readonly code = 'ADMISSION_STATE'
  readonly action: string
  readonly state: string
  constructor(action: string, state: string) {
    super(`Cannot ${action}: admission is ${state}`)
    this.name = 'AdmissionStateError'
    this.action = action
    this.state = state
  }
}

/** Somebody else published first; the candidate was dropped and has left no trace (PUB-4, PUB-5). */
export class AdmissionConflictError extends Error {
  readonly code = 'ADMISSION_CONFLICT'
  /** The generation that the candidate was prepared from. */
  readonly expected: number
  /** The generation that is current. */
  readonly actual: number
  constructor(expected: number, actual: number) {
    super(`Cannot publish: prepared from generation ${expected}, but ${actual} is current`)
    this.name = 'AdmissionConflictError'
    this.expected = expected
    this.actual = actual
  }
}

/** The candidate changes a rate or a partition while enabled (PUB-9); nothing has changed. Lists every such path. */
export class UnsupportedTransitionError extends Error {
  readonly code = 'ADMISSION_UNSUPPORTED_TRANSITION'
  /** JSON Pointers into the candidate or, for what it removes, into the current configuration. */
  readonly paths: readonly string[]
  constructor(paths: readonly string[]) {
    super(
      `Cannot update rates or partitions while enabled: ${paths.slice(0, 5).join(', ')}${paths.length > 5 ? ', …' : ''}`,
    )
    this.name = 'UnsupportedTransitionError'
    this.paths = paths
  }
}
