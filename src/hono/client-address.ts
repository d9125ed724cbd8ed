import type { Context } from 'hono'
import type { GetConnInfo } from 'hono/conninfo'
import { convertIPv4BinaryToString, convertIPv6BinaryToString } from 'hono/utils/ipaddr'
import { type Address, mask, parseAddress, peerOf, rangesOf } from './address.ts'

export interface ClientAddressOptions {
  /** The adapter's own, such as `getConnInfo` of `@hono/node-server/conninfo`. */
  readonly getConnInfo: GetConnInfo
  /**
   * Addresses or CIDR ranges of the proxies in front, whose `X-Forwarded-For` is believed. Default none: the field is
   * ignored, for anybody can send it.
   */
  readonly trustedProxies?: readonly string[]
  /** One IPv6 client commands a whole prefix; this many leading bits, 1 to 128, are its key. Default 64. */
  readonly ipv6Prefix?: number
}

/** Reads an entry of `X-Forwarded-For`, which some proxies write with a port: `192.0.2.1:80`, `[2001:db8::1]:80`. */
function parseForwarded(entry: string): Address | undefined {
  const trimmed = entry.trim()
  const withPort = /^\[(.+)\](?::\d+)?$/.exec(trimmed) ?? /^([^:]+):\d+$/.exec(trimmed)
  return parseAddress(withPort?.[1] ?? trimmed)
}

/**
 * A key selector: the address of the client (WEB-7).
 *
 * The peer's address or, behind trusted proxies, the right-most forwarded one that is not itself of a trusted proxy:
 * whatever stands left of it anybody can have written. IPv4-mapped addresses are IPv4; an IPv6 key is its prefix, such
 * as `2001:db8::/64`. Without connection information, or for a peer without an IP address, `undefined`.
 *
 * @throws {TypeError} when a trusted proxy is neither an address nor a range.
 * @throws {RangeError} when the prefix is no whole number from 1 to 128.
 *
 * @example
 * ```ts
 * import { getConnInfo } from '@hono/node-server/conninfo'
 * const admission = createAdmission({ selectors: { client: clientAddress({ getConnInfo, trustedProxies: ['10.0.0.0/8'] }) } })
 * ```
 */
export function clientAddress(options: ClientAddressOptions): (c: Context) => string | undefined {
  const { getConnInfo, ipv6Prefix = 64 } = options
  if (!Number.isInteger(ipv6Prefix) || ipv6Prefix < 1 || ipv6Prefix > 128) {
    throw new RangeError(`Cannot use an IPv6 prefix of ${ipv6Prefix} bits: must be a whole number from 1 to 128`)
  }
  const isTrusted = rangesOf(options.trustedProxies ?? [])

  return function clientAddress(c: Context): string | undefined {
    let client = parseAddress(peerOf(c, getConnInfo) ?? '')
    if (client === undefined) return undefined
    if (isTrusted(client)) {
      const forwarded = c.req.header('x-forwarded-for')?.split(',') ?? []
      for (let i = forwarded.length - 1; i >= 0 && isTrusted(client); i -= 1) {
        const next = parseForwarded(forwarded[i] ?? '')
        if (next === undefined) break // no address: its sender is the last that is known
        client = next
      }
    }
    if (client.bits === 32) return convertIPv4BinaryToString(client.value)
    return `${convertIPv6BinaryToString(client.value & mask(128, ipv6Prefix))}/${ipv6Prefix}`
  }
}
