import type { AdmissionCore } from '../admission-core.ts'
import { declaredBytes } from '../hono/declared-bytes.ts'
import type { FetchApp } from './serve.ts'

/**
 * The app; while announcing, draining or stopped its HTTP/1.1 responses ask the client to leave the connection, so that
 * clients behind a balancer of connections leave, too (RUN-5). Until then it costs one look at the core.
 */
export function leavingFetch<Info extends object>(
  app: FetchApp,
  core: AdmissionCore,
): (request: Request, info: Info) => Response | Promise<Response> {
  return (request, info) => {
    const answer = app.fetch(request, info)
    // Over TLS it could be HTTP/2, where the header is forbidden; an upgrade needs its own.
    if (core.ready || !request.url.startsWith('http:') || request.headers.has('upgrade')) return answer
    return askToLeave(request, answer)
  }
}

async function askToLeave(request: Request, answer: Response | Promise<Response>): Promise<Response> {
  const response = await answer
  if (!isReceived(request)) return response
  try {
    response.headers.set('connection', 'close')
    return response
  } catch {
    // Headers of a fetched response cannot be changed.
    const copy = new Response(response.body, response)
    copy.headers.set('connection', 'close')
    return copy
  }
}

/** Where a body is unread the answer could be lost. Of one without a length the handler may have read a part only. */
function isReceived(request: Request): boolean {
  const bytes = declaredBytes(request)
  return bytes === 0 || (bytes !== 'unknown' && request.bodyUsed)
}
