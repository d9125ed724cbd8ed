/**
 * What a failed `fetch` says about the request.
 *
 * - `unsent`: no connection was made, so the upstream has seen nothing of it.
 * - `cut`: the connection ended before an answer; an upstream that let an idle socket go, or one that died half-way.
 * - `unknown`: anything else.
 */
export type FetchFailure = 'unsent' | 'cut' | 'unknown'

// Node has the code on a cause, Bun on the error itself.
const UNSENT_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'UND_ERR_CONNECT_TIMEOUT',
  'ConnectionRefused',
  'FailedToOpenSocket',
])
const CUT_CODES: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'EPIPE',
  'UND_ERR_SOCKET',
  'ConnectionClosed',
  'ConnectionReset',
])
// Deno has no codes: the phase stands in the message of the cause. A URL in it cannot contain a blank.
const UNSENT_MESSAGE = /client error \(Connect\)/
const CUT_MESSAGE = /connection closed before message completed|connection reset by peer|broken pipe/i

/** Judges by what each runtime was measured to throw. What is not recognised is `unknown`, never a guess. */
export function classifyFetchFailure(error: unknown): FetchFailure {
  // Bounded: a cause may lead back to its error.
  for (let depth = 0, link: unknown = error; depth < 4 && link instanceof Error; depth += 1, link = link.cause) {
    const failure = link instanceof AggregateError ? ofAll(link.errors) : ofOne(link)
    if (failure !== 'unknown') return failure
  }
  return 'unknown'
}

/** Several addresses were tried: nothing was sent only if that holds for each. */
function ofAll(errors: readonly unknown[]): FetchFailure {
  const failures = errors.map((error) => (error instanceof Error ? ofOne(error) : 'unknown'))
  if (failures.length > 0 && failures.every((failure) => failure === 'unsent')) return 'unsent'
  return failures.includes('cut') ? 'cut' : 'unknown'
}

function ofOne(error: Error): FetchFailure {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  // A connect that timed out has the same code as a read that did; only the former sent nothing.
  if (UNSENT_CODES.has(code) || (code === 'ETIMEDOUT' && isConnect(error))) return 'unsent'
  if (CUT_CODES.has(code)) return isConnect(error) ? 'unsent' : 'cut'
  if (UNSENT_MESSAGE.test(error.message) || error.name === 'ConnectionRefused') return 'unsent'
  return CUT_MESSAGE.test(error.message) || error.name === 'ConnectionReset' ? 'cut' : 'unknown'
}

function isConnect(error: Error): boolean {
  return 'syscall' in error && error.syscall === 'connect'
}
