import { boundedBytes, jsonIn } from '../hono/bounded-body.ts'

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
    const bytes = await boundedBytes(request, maxBytes)
    return bytes === undefined ? { kind: 'too_large' } : { kind: 'json', value: jsonIn(bytes) }
  } catch {
    return { kind: 'broken' }
  }
}
