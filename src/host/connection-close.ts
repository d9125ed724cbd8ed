import type { AdmissionCore } from '../admission-core.ts'
import { declaredBytes } from '../hono/declared-bytes.ts'
import type { FetchApp } from './serve.ts'

/**
 * The app; while announcing, draining or stopped its HTTP/1.1 responses ask the client to leave the connection, so that
 * clients behind a balancer of connections leave, too (RUN-5).
 *
 * Never where a request has a body, which may be unread: the answer could be lost. Until then it costs one look at the
 * core.
 */
export function closingFetch<Info extends object>(
  app: FetchApp,
  core: AdmissionCore,
): (request: Request, info: Info) => Response | Promise<Response> {
  return (request, info) => {
    if (core.ready || !mayAskToClose(request)) return app.fetch(request, info)
    return askToClose(app.fetch(request, info))
  }
}

/** Over TLS it could be HTTP/2, where the header is forbidden; an upgrade needs its own. */
function mayAskToClose(request: Request): boolean {
  return request.url.startsWith('http:') && !request.headers.has('upgrade') && declaredBytes(request) === 0
}

async function askToClose(answer: Response | Promise<Response>): Promise<Response> {
  const response = await answer
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
