import { boundedText } from '../hono/bounded-body.ts'

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

/** Reads at most `maxBytes`; a body that breaks off is broken. */
export async function readJson(request: Request, maxBytes: number): Promise<JsonBody> {
  try {
    const text = await boundedText(request, maxBytes)
    if (text === undefined) return { kind: 'too_large' }
    return text === null ? { kind: 'broken' } : { kind: 'json', value: JSON.parse(text) }
  } catch {
    return { kind: 'broken' }
  }
}
