import type { ConfigInput } from '../config/types.ts'
import { Problem } from './admin-problem.ts'
import { boundedBytes, jsonIn } from './bounded-body.ts'

/** A candidate of 10 000 rules has about a quarter of this. Bytes. */
export const MAX_BODY_BYTES = 1_048_576

function isJson(request: Request): boolean {
  const [mediaType = ''] = (request.headers.get('content-type') ?? '').split(';', 1)
  const encoding = request.headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity'
  return mediaType.trim().toLowerCase() === 'application/json' && encoding === 'identity'
}

/**
 * The bytes of a JSON body, not yet parsed.
 *
 * @throws {Problem} 415 for another media type or a content coding, 413 over {@link MAX_BODY_BYTES}.
 */
export async function jsonBytes(request: Request): Promise<Uint8Array> {
  if (!isJson(request)) throw new Problem(415, { detail: 'The body must be application/json.' })
  const bytes = await boundedBytes(request, MAX_BODY_BYTES)
  if (bytes === undefined) throw new Problem(413, { detail: `The body has more than ${MAX_BODY_BYTES} bytes.` })
  return bytes
}

/** As {@link jsonBytes}, for a body that may be left out: then `undefined`, and the media type does not matter. */
export async function optionalJsonBytes(request: Request): Promise<Uint8Array | undefined> {
  const declared = request.headers.get('content-length')
  if (declared === '0' || request.body === null) return undefined
  if (declared !== null || isJson(request)) {
    const bytes = await jsonBytes(request)
    return bytes.byteLength === 0 ? undefined : bytes
  }
  // No declared length and no JSON: only an empty body is right.
  const reader = request.body.getReader()
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    if (next.value.byteLength > 0) {
      reader.releaseLock()
      throw new Problem(415, { detail: 'The body must be application/json.' })
    }
  }
  return undefined
}

/**
 * The value of the body, as {@link jsonIn} reads it.
 *
 * @throws {Problem} 400 when it is no JSON, without the parser's own message, which quotes the document.
 */
export function parseJson(bytes: Uint8Array): unknown {
  return documentIn(bytes)
}

/** As {@link parseJson}. Nothing has judged it yet: its type is what the core takes, and the core trusts no candidate. */
export function parseCandidate(bytes: Uint8Array): ConfigInput {
  return documentIn(bytes)
}

function documentIn(bytes: Uint8Array): ReturnType<typeof JSON.parse> {
  try {
    return jsonIn(bytes)
  } catch {
    throw new Problem(400, { detail: 'The body is not well-formed JSON in UTF-8.' })
  }
}
