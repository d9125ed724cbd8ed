/** A request body read as JSON, or why it is none. */
export type JsonBody =
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'too_large' }
  | { readonly kind: 'broken' }

/** Whether the request says that its body is JSON, and not coded. */
export function isJsonType(request: Request): boolean {
  if (/[^\s]/.test(request.headers.get('content-encoding')?.replace(/identity/i, '') ?? '')) return false
  return /^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(request.headers.get('content-type') ?? '')
}

/** Reads at most `maxBytes`; more is refused by what is declared, or as soon as it is there. */
export async function readJson(request: Request, maxBytes: number): Promise<JsonBody> {
  if (Number(request.headers.get('content-length')) > maxBytes) return { kind: 'too_large' }
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  try {
    if (request.body !== null) {
      const reader = request.body.getReader()
      let bytes = 0
      for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
        bytes += chunk.value.byteLength
        if (bytes > maxBytes) return { kind: 'too_large' }
        text += decoder.decode(chunk.value, { stream: true })
      }
    }
    text += decoder.decode()
    const value: unknown = JSON.parse(text)
    return { kind: 'json', value }
  } catch {
    return { kind: 'broken' }
  }
}
