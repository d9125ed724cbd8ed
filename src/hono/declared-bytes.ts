import type { DeclaredBytes } from '../call.ts'

/**
 * The bytes that a request declares for its body, without reading it (QUE-8).
 *
 * `Content-Length` when it is a safe integer; 0 without a body; else `unknown`. Headers are asked first: merely
 * looking at `body` makes the Node adapter build a whole request.
 */
export function declaredBytes(request: Request): DeclaredBytes {
  const length = request.headers.get('content-length')
  if (length !== null) {
    const bytes = /^\d+$/.test(length) ? Number(length) : Number.NaN
    return Number.isSafeInteger(bytes) ? bytes : 'unknown'
  }
  if (request.headers.has('transfer-encoding')) return 'unknown'
  if (request.method === 'GET' || request.method === 'HEAD') return 0
  return request.body === null ? 0 : 'unknown'
}
