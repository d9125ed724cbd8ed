import type { Context } from 'hono'
import type { GetConnInfo } from 'hono/conninfo'
import { convertIPv4ToBinary, convertIPv6ToBinary, distinctRemoteAddr } from 'hono/utils/ipaddr'

/** One IP address. */
export interface Address {
  readonly bits: 32 | 128
  readonly value: bigint
}

interface Range extends Address {
  readonly prefix: number
}

const IPV4_MAPPED = 0xffffn

/** Whom a request came from, as the runtime says it; undefined: it does not. */
export function peerOf(c: Context, getConnInfo: GetConnInfo): string | undefined {
  try {
    return getConnInfo(c).remote.address
  } catch {
    return undefined // adapters throw where there is no connection, as under app.request()
  }
}

/** The `prefix` leading ones of so many bits. */
export function mask(bits: number, prefix: number): bigint {
  return ((1n << BigInt(prefix)) - 1n) << BigInt(bits - prefix)
}

/** Reads one address; an IPv4-mapped one is IPv4. `undefined`: not an address. */
export function parseAddress(text: string): Address | undefined {
  try {
    if (distinctRemoteAddr(text) === 'IPv4') return { bits: 32, value: convertIPv4ToBinary(text) }
    if (!text.includes(':')) return undefined
    const value = convertIPv6ToBinary(text)
    return value >> 32n === IPV4_MAPPED ? { bits: 32, value: value & mask(32, 32) } : { bits: 128, value }
  } catch {
    return undefined
  }
}

function parseRange(text: string): Range {
  const [address = '', prefixText, ...rest] = text.split('/')
  const parsed = parseAddress(address)
  const width = address.includes(':') ? 128 : 32
  const prefix = prefixText === undefined ? width : /^\d{1,3}$/.test(prefixText) ? Number(prefixText) : -1
  // A range of IPv4-mapped addresses is one of IPv4 addresses; a wider one that merely contains them is not.
  const ownPrefix = parsed === undefined ? -1 : prefix - (width - parsed.bits)
  if (parsed === undefined || rest.length > 0 || prefix > width || ownPrefix < 0) {
    throw new TypeError(`Cannot trust proxy '${text}': must be an IP address or a CIDR range`)
  }
  return { ...parsed, prefix: ownPrefix }
}

function contains(range: Range, address: Address): boolean {
  return range.bits === address.bits && ((range.value ^ address.value) & mask(range.bits, range.prefix)) === 0n
}

/**
 * Is an address in one of these?
 *
 * @throws {TypeError} when one is neither an address nor a CIDR range.
 */
export function rangesOf(texts: readonly string[]): (address: Address) => boolean {
  const ranges = texts.map(parseRange)
  return (address) => ranges.some((range) => contains(range, address))
}
