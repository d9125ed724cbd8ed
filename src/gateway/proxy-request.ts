import type { Context } from 'hono'
import type { GetConnInfo } from 'hono/conninfo'
import { parseAddress, peerOf, rangesOf } from '../hono/address.ts'
import { headersForUpstream, type Incoming } from './forwarded-headers.ts'
import { problem } from './problem.ts'

/** What of a request is the same for every upstream that it may be sent to. */
export interface ProxyRequest {
  readonly raw: Request
  /** Path and query; starts with `/`. */
  readonly path: string
  readonly headers: Headers
  /** Null when there is none; never read or replaced here (QUE-8). */
  readonly body: ReadableStream<Uint8Array> | null
}

/** How a request is seen and changed on its way. */
export interface ForwardingOptions {
  /** The runtime's `getConnInfo`; without it the peer's address is unknown to upstreams. */
  readonly getConnInfo?: GetConnInfo
  /**
   * Peers whose forwarding headers are kept and extended: all, or by their address, as addresses and CIDR ranges or as a
   * function; that needs `getConnInfo`. Default none: the headers are replaced.
   */
  readonly trustedProxies?: boolean | readonly string[] | ((peer: string) => boolean)
  /** Gives the path for the upstream, for a gateway that is mounted below a prefix. Starts with `/`; the query stays. */
  readonly rewritePath?: (path: string, c: Context) => string
}

/** {@link ForwardingOptions}, checked. */
export interface Forwarding {
  readonly getConnInfo: ForwardingOptions['getConnInfo'] | undefined
  readonly isTrusted: (peer: string | undefined) => boolean
  readonly rewritePath: ForwardingOptions['rewritePath'] | undefined
}

/** @throws {TypeError} when nobody can be trusted like that. */
export function forwardingOf({ getConnInfo, trustedProxies = false, rewritePath }: ForwardingOptions): Forwarding {
  if (typeof trustedProxies !== 'boolean' && getConnInfo === undefined) {
    throw new TypeError('Cannot proxy: to trust peers by their address, trustedProxies needs getConnInfo')
  }
  return { getConnInfo, isTrusted: trust(trustedProxies), rewritePath }
}

function trust(trusted: NonNullable<ForwardingOptions['trustedProxies']>): Forwarding['isTrusted'] {
  if (typeof trusted === 'boolean') return () => trusted
  if (typeof trusted === 'function') return (peer) => peer !== undefined && trusted(peer)
  if (!Array.isArray(trusted)) throw new TypeError('Cannot proxy: trustedProxies is no boolean, list or function')
  const isInRanges = rangesOf(trusted)
  return (peer) => {
    const address = peer === undefined ? undefined : parseAddress(peer)
    return address !== undefined && isInRanges(address)
  }
}

/**
 * Reads the request as it shall be sent on. O(headers).
 *
 * @throws {Error} when a middleware in front has read the body: there is nothing left to send.
 */
export function proxyRequest(c: Context, { getConnInfo, isTrusted, rewritePath }: Forwarding): ProxyRequest {
  const { raw } = c.req
  if (raw.bodyUsed) throw new Error('Cannot proxy: the request body was read before the gateway could pass it on')
  const url = new URL(raw.url)
  const path = rewritePath?.(url.pathname, c) ?? url.pathname
  const body = raw.headers.get('content-length') === '0' ? null : raw.body
  const peer = getConnInfo === undefined ? undefined : peerOf(c, getConnInfo)
  const incoming: Incoming = {
    peer,
    protocol: url.protocol === 'https:' ? 'https' : 'http',
    host: raw.headers.get('host') ?? url.host,
    isTrusted: isTrusted(peer),
    hasBody: body !== null,
  }
  return {
    raw,
    // A slash in front, whatever the rewrite gave: appended to a base, it can never reach another host.
    path: `${path.startsWith('/') ? '' : '/'}${path}${url.search}`,
    headers: headersForUpstream(raw.headers, incoming),
    body,
  }
}

/** The answer to a request that `fetch` cannot carry, said clearly instead of sending something else; or null. */
export function unsupported({ method, headers, body }: Request): Response | null {
  if (/(^|[\s,])websocket($|[\s,/])/i.test(headers.get('upgrade') ?? '')) {
    const detail = 'This gateway does not pass on WebSocket upgrades.'
    return problem(501, { title: 'Upgrade not supported', detail, reason: 'upgrade_unsupported' })
  }
  if (method === 'TRACE' || method === 'CONNECT') {
    const detail = `This gateway does not pass on ${method}.`
    return problem(501, { title: 'Method not supported', detail, reason: 'method_unsupported' })
  }
  // The runtime has thrown such a body away; without it a search, say, would find something else.
  const length = headers.get('content-length')
  const declaresBody = (length !== null && length !== '0') || headers.has('transfer-encoding')
  if ((method === 'GET' || method === 'HEAD') && body === null && declaresBody) {
    const detail = `This gateway does not pass on the body of a ${method}.`
    return problem(501, { title: 'Request body not supported', detail, reason: 'body_unsupported' })
  }
  return null
}
