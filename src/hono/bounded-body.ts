/**
 * The bytes of a body, `undefined` when there are more than `maxBytes`: by the declared length, or at the first chunk
 * that is over it, whatever was declared (ADX-2). Rejects when the body breaks off.
 */
export async function boundedBytes(request: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const chunks: Uint8Array[] = []
  const byteCount = await readBounded(request, maxBytes, (chunk) => chunks.push(chunk))
  if (byteCount === undefined) return undefined
  const bytes = new Uint8Array(byteCount)
  let offset = 0
  for (const chunk of chunks) {
    bytes.set(chunk, offset)
    offset += chunk.byteLength
  }
  return bytes
}

const DECODED_AT_ONCE = 65_536 // bytes
const BYTE_ORDER_MARK = '\uFEFF'

/**
 * The text of a body, `undefined` as in {@link boundedBytes}, and null when it is no UTF-8. Decoded as it comes in and
 * in small pieces: as one piece, half a megabyte takes four times as long.
 */
export async function boundedText(request: Request, maxBytes: number): Promise<string | null | undefined> {
  // The mark is left to us: in a stream, workerd drops the first one wherever it is, if that is where a piece begins.
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let text: string | null = ''
  const decode = (...piece: Parameters<TextDecoder['decode']>): void => {
    try {
      if (text !== null) text += decoder.decode(...piece)
    } catch {
      text = null
    }
  }
  const byteCount = await readBounded(request, maxBytes, (chunk) => {
    for (let from = 0; from < chunk.byteLength; from += DECODED_AT_ONCE) {
      decode(chunk.subarray(from, from + DECODED_AT_ONCE), { stream: true })
    }
  })
  decode()
  return byteCount === undefined ? undefined : text?.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text
}

/** How many bytes there were; undefined: too many. */
async function readBounded(
  request: Request,
  maxBytes: number,
  take: (chunk: Uint8Array) => void,
): Promise<number | undefined> {
  if (Number(request.headers.get('content-length')) > maxBytes) return undefined
  if (request.body === null) return 0
  let byteCount = 0
  const reader = request.body.getReader()
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    byteCount += next.value.byteLength
    if (byteCount > maxBytes) {
      // The rest stays unread: cancelling it makes some runtimes drop the answer with the connection (RUN-5).
      reader.releaseLock()
      return undefined
    }
    take(next.value)
  }
  return byteCount
}
