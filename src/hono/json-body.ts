import { nextTurn } from '../clock.ts'
import type { ConfigInput } from '../config/types.ts'
import { Problem } from './admin-problem.ts'
import { boundedText } from './bounded-body.ts'

/** A candidate of 10 000 rules has about half of this. Bytes. */
export const MAX_BODY_BYTES = 1_048_576
const LARGE_BODY_LENGTH = 65_536

/** The text of a body, not yet parsed. Null: it is no UTF-8, which is as bad as no JSON, and is said when that is. */
export type JsonText = string | null

function isJson(request: Request): boolean {
  const [mediaType = ''] = (request.headers.get('content-type') ?? '').split(';', 1)
  const encoding = request.headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity'
  return mediaType.trim().toLowerCase() === 'application/json' && encoding === 'identity'
}

/**
 * The text of a JSON body.
 *
 * @throws {Problem} 415 for another media type or a content coding, 413 over {@link MAX_BODY_BYTES}.
 */
export async function jsonText(request: Request): Promise<JsonText> {
  if (!isJson(request)) throw new Problem(415, { detail: 'The body must be application/json.' })
  const text = await boundedText(request, MAX_BODY_BYTES)
  if (text === undefined) throw new Problem(413, { detail: `The body has more than ${MAX_BODY_BYTES} bytes.` })
  await afterLarge(text)
  return text
}

/**
 * Lets the event loop turn when a body is large: parsing it and writing the answer to it take milliseconds each, and
 * should not be in one block with what is before.
 */
export async function afterLarge(text: JsonText): Promise<void> {
  if (text !== null && text.length > LARGE_BODY_LENGTH) await nextTurn()
}

/** As {@link jsonText}, for a body that may be left out: then `undefined`, and the media type does not matter. */
export async function optionalJsonText(request: Request): Promise<JsonText | undefined> {
  const declared = request.headers.get('content-length')
  if (declared === '0' || request.body === null) return undefined
  if (declared !== null || isJson(request)) {
    const text = await jsonText(request)
    return text === '' ? undefined : text
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
 * The value of the body. Of duplicate keys the last counts, and `__proto__` is a key like any other.
 *
 * @throws {Problem} 400 when it is no JSON, without the parser's own message, which quotes the document.
 */
export function parseJson(text: JsonText): unknown {
  return documentIn(text)
}

/** As {@link parseJson}. Nothing has judged it yet: its type is what the core takes, and the core trusts no candidate. */
export function parseCandidate(text: JsonText): ConfigInput {
  return documentIn(text)
}

function documentIn(text: JsonText): ReturnType<typeof JSON.parse> {
  try {
    if (text !== null) return JSON.parse(text)
  } catch {}
  throw new Problem(400, { detail: 'The body is not well-formed JSON in UTF-8.' })
}
