/**
 * What a failed `fetch` says about the request.
 *
 * - `unsent`: no connection was made, so the upstream has seen nothing of it.
 * - `cut`: the connection ended before an answer; an upstream that let an idle socket go, or one that died half-way.
 * - `unknown`: anything else.
 */
export type FetchFailure = 'unsent' | 'cut' | 'unknown'

// Node has the code on a cause, Bun on the error itself. These name the step that failed, unless a system call says otherwise.
const UNSENT_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'ConnectionRefused',
  'FailedToOpenSocket',
])
// A request that was sent can end in these too, so they are unsent by `connect` only.
const UNREACHABLE_CODES: ReadonlySet<string> = new Set([
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ETIMEDOUT',
])
// Not every runtime names the system call.
const UNUSED_SOCKET: ReadonlySet<string> = new Set(['', 'connect', 'getaddrinfo'])
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
  const syscall = 'syscall' in error && typeof error.syscall === 'string' ? error.syscall : ''
  const isConnect = syscall === 'connect'
  if (UNSENT_CODES.has(code)) return UNUSED_SOCKET.has(syscall) ? 'unsent' : 'unknown'
  if (UNREACHABLE_CODES.has(code)) return isConnect ? 'unsent' : 'unknown'
  if (CUT_CODES.has(code)) return isConnect ? 'unsent' : 'cut'
  if (UNSENT_MESSAGE.test(error.message) || error.name === 'ConnectionRefused') return 'unsent'
  return CUT_MESSAGE.test(error.message) || error.name === 'ConnectionReset' ? 'cut' : 'unknown'
}
