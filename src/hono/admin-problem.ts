import type { Context } from 'hono'
import {
  AdmissionConfigError,
  AdmissionConflictError,
  AdmissionStateError,
  type ConfigIssue,
  UnsupportedTransitionError,
} from '../errors.ts'

/** Issues or paths that one answer lists; `total` says how many there are (ADX-2). */
const MAX_LISTED = 100
/** Characters of one pointer or message: both can quote a key of the candidate, which can be the whole of it. */
const MAX_TEXT_CHARS = 500

const TITLES = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  412: 'Precondition Failed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Content',
  428: 'Precondition Required',
} as const

export type ProblemStatus = keyof typeof TITLES

interface ProblemMembers {
  readonly detail?: string
  readonly issues?: readonly ConfigIssue[]
  readonly paths?: readonly string[]
}

/** Why the admin route does not do what it was asked: thrown there, and answered there as an RFC 9457 document. */
export class Problem extends Error {
  readonly status: ProblemStatus
  readonly members: ProblemMembers
  readonly headers: { readonly [name: string]: string }

  constructor(status: ProblemStatus, members: ProblemMembers = {}, headers: { readonly [name: string]: string } = {}) {
    super(members.detail ?? TITLES[status])
    this.name = 'Problem'
    this.status = status
    this.members = members
    this.headers = headers
  }
}

function clipped(text: string): string {
  return text.length > MAX_TEXT_CHARS ? `${text.slice(0, MAX_TEXT_CHARS)}…` : text
}

/** The problem document; it never repeats what was sent, beyond the names that are wrong in it. */
export function problemResponse(c: Context, problem: Problem): Response {
  const { status, members } = problem
  const listed = members.issues ?? members.paths
  const document = {
    type: 'about:blank',
    title: TITLES[status],
    status,
    ...(members.detail === undefined ? {} : { detail: members.detail }),
    ...(members.issues === undefined
      ? {}
      : {
          issues: members.issues
            .slice(0, MAX_LISTED)
            .map(({ pointer, message }) => ({ pointer: clipped(pointer), message: clipped(message) })),
        }),
    ...(members.paths === undefined ? {} : { paths: members.paths.slice(0, MAX_LISTED).map(clipped) }),
    ...(listed === undefined ? {} : { total: listed.length }),
  }
  return c.body(JSON.stringify(document), status, {
    'Content-Type': 'application/problem+json',
    'Cache-Control': 'no-store',
    ...problem.headers,
  })
}

/** What an error of the core looks like to an operator; `undefined`: no mistake of theirs, and not ours to hide. */
export function problemOf(error: unknown): Problem | undefined {
  if (error instanceof Problem) return error
  if (error instanceof AdmissionConfigError) {
    return new Problem(422, { detail: 'The configuration is not valid.', issues: error.issues })
  }
  if (error instanceof UnsupportedTransitionError) {
    return new Problem(409, { detail: 'Rates and partitions cannot change while enabled.', paths: error.paths })
  }
  if (error instanceof AdmissionConflictError) return new Problem(412, { detail: error.message })
  if (error instanceof AdmissionStateError) return new Problem(409, { detail: error.message })
  return undefined
}
