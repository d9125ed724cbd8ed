import { Problem } from './admin-problem.ts'

/** A candidate of 10 000 rules has about a quarter of this. Bytes. */
export const MAX_BODY_BYTES = 1_048_576

function isJson(request: Request): boolean {
  const [mediaType = ''] = (request.headers.get('content-type') ?? '').split(';', 1)
  const encoding = request.headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity'
  return mediaType.trim().toLowerCase() === 'application/json' && encoding === 'identity'
}

function tooLarge(): Problem {
  return new Problem(413, { detail: `The body has more than ${MAX_BODY_BYTES} bytes.` })
}

/** Reads the body, and stops at the first chunk that is over the limit, whatever length was declared (ADX-2). */
async function readBytes(body: ReadableStream<Uint8Array> | null): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let byteCount = 0
  if (body !== null) {
    const reader = body.getReader()
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      byteCount += next.value.byteLength
      if (byteCount > MAX_BODY_BYTES) {
        // The rest stays unread: cancelling it makes some runtimes drop the answer with the connection (RUN-5).
        reader.releaseLock()
        throw tooLarge()
      }
      chunks.push(next.value)
    }
  }
  const bytes = new Uint8Array(byteCount)
  let offset = 0
  for (const chunk of chunks) {
    bytes.set(chunk, offset)
    offset += chunk.byteLength
  }
  return bytes
}

/**
 * The bytes of a JSON body, not yet parsed.
 *
 * @throws {Problem} 415 for another media type or a content coding, 413 over {@link MAX_BODY_BYTES}.
 */
export async function jsonBytes(request: Request): Promise<Uint8Array> {
  if (!isJson(request)) throw new Problem(415, { detail: 'The body must be application/json.' })
  if (Number(request.headers.get('content-length')) > MAX_BODY_BYTES) throw tooLarge()
  return await readBytes(request.body)
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
 * The parsed value. Of duplicate keys the last counts, and `__proto__` is a key like any other.
 *
 * @throws {Problem} 400 when the bytes are no UTF-8 or no JSON, or nested deeper than the engine's parser goes; without
 * the parser's own message, which quotes the document.
 */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new Problem(400, { detail: 'The body is not well-formed JSON in UTF-8.' })
  }
}
