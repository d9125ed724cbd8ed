/** Members of a problem document (RFC 9457) besides `type` and `status`. */
export interface Problem {
  readonly title: string
  readonly detail: string
  readonly reason: string
  readonly [member: string]: unknown
}

/** A problem document as a response. Never stored; a function of its arguments only. */
export function problem(status: number, members: Problem, headers: { readonly [name: string]: string } = {}): Response {
  return new Response(JSON.stringify({ type: 'about:blank', status, ...members }), {
    status,
    headers: { 'content-type': 'application/problem+json', 'cache-control': 'no-store', ...headers },
  })
}
