/** What is known of the connection that a request came on. */
export interface Incoming {
  /** Address of the peer, where the runtime tells. */
  readonly peer: string | undefined
  readonly protocol: 'http' | 'https'
  readonly host: string
  /** Whether the peer is a proxy whose own forwarding headers are to be believed. */
  readonly isTrusted: boolean
  readonly hasBody: boolean
}

// RFC 9110, 7.6.1, and what older clients send. `Expect` is a matter of this hop too: our server has answered it.
const HOP_BY_HOP = [
  'connection',
  'expect',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

/**
 * The headers for the upstream: end-to-end ones as they came, none that belongs to this hop, and who really asked.
 *
 * From a peer that is not trusted, every forwarding header it sent is dropped, so that nobody can claim an address.
 * From a trusted one its chain is kept and the peer appended. `Host` is left to the upstream's URL; the client's is in
 * `X-Forwarded-Host`. Does not change `received`.
 */
export function headersForUpstream(received: Headers, incoming: Incoming): Headers {
  const headers = new Headers(received)
  // What a Connection header names goes, but not the chain: a client must not erase what a trusted proxy wrote.
  for (const named of (received.get('connection') ?? '').toLowerCase().split(',')) {
    const name = named.trim()
    if (/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(name) && !isForwarding(name)) headers.delete(name)
  }
  for (const name of HOP_BY_HOP) headers.delete(name)
  headers.delete('host')
  if (!incoming.hasBody) headers.delete('content-length')
  if (!incoming.isTrusted) for (const name of [...headers.keys()]) if (isForwarding(name)) headers.delete(name)

  const peer = incoming.peer === undefined ? undefined : plainAddress(incoming.peer)
  if (peer !== undefined) headers.append('x-forwarded-for', peer)
  if (!headers.has('x-forwarded-proto')) headers.set('x-forwarded-proto', incoming.protocol)
  if (!headers.has('x-forwarded-host')) headers.set('x-forwarded-host', incoming.host)
  headers.append('forwarded', forwardedElement(peer, incoming))
  return headers
}

function isForwarding(name: string): boolean {
  return name === 'forwarded' || name === 'x-real-ip' || name.startsWith('x-forwarded-')
}

/** An IPv4-mapped IPv6 address as the IPv4 it is; without the zone, which means something on this machine only. */
function plainAddress(address: string): string {
  const [withoutZone = ''] = address.split('%')
  return /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i.exec(withoutZone)?.[1] ?? withoutZone
}

/** One element of RFC 7239; an IPv6 address stands in brackets and quotes, an unknown peer is called so. */
function forwardedElement(peer: string | undefined, { host, protocol }: Incoming): string {
  const node = peer === undefined ? 'unknown' : peer.includes(':') ? `"[${peer}]"` : peer
  return `for=${node};host="${host.replace(/["\\]/g, '')}";proto=${protocol}`
}
