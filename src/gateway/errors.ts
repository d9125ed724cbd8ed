import type { ConfigIssue } from '../errors.ts'

/** The input is malformed; nothing has changed. Lists every issue with its JSON Pointer. */
export class GatewayInputError extends Error {
  readonly code = 'GATEWAY_INPUT'
  readonly issues: readonly ConfigIssue[]
  /** Whether an event has an unknown, missing or wrongly cased type: 400 instead of 422 (GWY-1). */
  readonly unknownType: boolean
  constructor(subject: string, issues: readonly ConfigIssue[], unknownType = false) {
    const shown = issues.slice(0, 5).map((issue) => `${issue.pointer || '(document)'}: ${issue.message}`)
    const more = issues.length > shown.length ? ` (+${issues.length - shown.length} more)` : ''
    super(`Invalid ${subject}: ${shown.join('; ')}${more}`)
    this.name = 'GatewayInputError'
    this.issues = issues
    this.unknownType = unknownType
  }
}

/** Why a well-formed event or set does not fit the upstreams as they are. */
export type UpstreamRule = 'unknown_upstream' | 'stale_generation' | 'url_conflict' | 'too_many_upstreams'

/** The event or set does not fit the upstreams as they are (GWY-2); nothing has changed, nor has the rest of its batch. */
export class UpstreamRuleError extends Error {
  readonly code = 'GATEWAY_RULE'
  readonly rule: UpstreamRule
  /** Id of the upstream. */
  readonly id: string
  /** Place in the batch or set, from 0. */
  readonly index: number
  constructor(rule: UpstreamRule, id: string, index: number, message: string) {
    super(message)
    this.name = 'UpstreamRuleError'
    this.rule = rule
    this.id = id
    this.index = index
  }
}

/** Somebody else changed the upstreams first; the set was dropped and has left no trace (GWY-8). */
export class UpstreamConflictError extends Error {
  readonly code = 'GATEWAY_CONFLICT'
  /** The revision that the set was prepared from. */
  readonly expected: number
  /** The revision that is current. */
  readonly actual: number
  constructor(expected: number, actual: number) {
    super(`Cannot replace the upstreams: prepared from revision ${expected}, but ${actual} is current`)
    this.name = 'UpstreamConflictError'
    this.expected = expected
    this.actual = actual
  }
}
