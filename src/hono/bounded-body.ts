/**
 * The bytes of a body, `undefined` when there are more than `maxBytes`: by the declared length, or at the first chunk
 * that is over it, whatever was declared (ADX-2). Rejects when the body breaks off.
 */
export async function boundedBytes(request: Request, maxBytes: number): Promise<Uint8Array | undefined> {
  if (Number(request.headers.get('content-length')) > maxBytes) return undefined
  const chunks: Uint8Array[] = []
  let byteCount = 0
  if (request.body !== null) {
    const reader = request.body.getReader()
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      byteCount += next.value.byteLength
      if (byteCount > maxBytes) {
        // The rest stays unread: cancelling it makes some runtimes drop the answer with the connection (RUN-5).
        reader.releaseLock()
        return undefined
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
 * The value of a JSON document. Of duplicate keys the last counts, and `__proto__` is a key like any other.
 *
 * @throws when the bytes are no UTF-8 or no JSON, or nested deeper than the engine's parser goes; the parser's message
 * quotes the document, so it is for nobody else to see.
 */
export function jsonIn(bytes: Uint8Array): ReturnType<typeof JSON.parse> {
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
}
