import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import { type ClientAddressOptions, clientAddress } from '../../src/hono/client-address.ts'

async function keyOf(
  peer: string | undefined,
  forwarded?: string,
  options: Partial<ClientAddressOptions> = {},
): Promise<string | undefined> {
  const selector = clientAddress({
    getConnInfo: () => ({ remote: peer === undefined ? {} : { address: peer } }),
    ...options,
  })
  let key: string | undefined
  const app = new Hono().get('/', (c) => {
    key = selector(c)
    return c.text('')
  })
  const response = await app.request('/', forwarded === undefined ? {} : { headers: { 'x-forwarded-for': forwarded } })
  expect(response.status).toBe(200)
  return key
}

describe('clientAddress', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:0201', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::9', '2001:db8:1:2::/64'],
    ['::1', '::/64'],
    ['fe80::1%eth0', 'fe80::/64'],
    ['', undefined],
    ['/run/app.sock', undefined],
    ['unknown', undefined],
    ['1.2.3', undefined],
    ['999.1.1.1', undefined],
    ['12345::', undefined],
    ['1::2::3', undefined],
  ])('WEB-7 the peer %j has the key %j', async (peer, key) => {
    expect(await keyOf(peer)).toBe(key)
  })

  it('WEB-7 two addresses of one /64 have one key, and a longer prefix tells them apart', async () => {
    expect(await keyOf('2001:db8::1')).toBe(await keyOf('2001:db8::ffff:ffff'))
    expect(await keyOf('2001:db8::1', undefined, { ipv6Prefix: 128 })).toBe('2001:db8::1/128')
    expect(await keyOf('2001:db8:ff::', undefined, { ipv6Prefix: 32 })).toBe('2001:db8::/32')
    expect(await keyOf('ffff::', undefined, { ipv6Prefix: 1 })).toBe('8000::/1')
  })

  it('WEB-7 without connection information there is no key, also when the adapter throws', async () => {
    expect(await keyOf(undefined)).toBeUndefined()
    const getConnInfo = (): never => {
      throw new TypeError('no socket')
    }
    expect(await keyOf('', undefined, { getConnInfo })).toBeUndefined()
  })

  it('WEB-7 forwarding fields of an untrusted peer are ignored', async () => {
    expect(await keyOf('192.0.2.1', '198.51.100.7')).toBe('192.0.2.1')
    expect(await keyOf('192.0.2.1', '198.51.100.7', { trustedProxies: ['192.0.2.2'] })).toBe('192.0.2.1')
  })

  it.each([
    ['198.51.100.7', '198.51.100.7'],
    ['6.6.6.6, 198.51.100.7', '198.51.100.7'],
    ['198.51.100.7, 10.1.1.1', '198.51.100.7'],
    ['6.6.6.6, 198.51.100.7,10.1.1.1 , 10.2.2.2', '198.51.100.7'],
    ['10.3.3.3, 10.1.1.1', '10.3.3.3'],
    ['::ffff:198.51.100.7', '198.51.100.7'],
    ['198.51.100.7:4711', '198.51.100.7'],
    ['[2001:db8:5::1]:4711', '2001:db8:5::/64'],
    ['[2001:db8:5::1]', '2001:db8:5::/64'],
    ['2001:db8:5::1', '2001:db8:5::/64'],
    ['198.51.100.7, unknown', '10.0.0.1'],
    ['198.51.100.7, garbage, 10.1.1.1', '10.1.1.1'],
    ['198.51.100.7, ', '10.0.0.1'],
    ['', '10.0.0.1'],
  ])('WEB-7 behind trusted 10.0.0.0/8, X-Forwarded-For %j has the key %j', async (forwarded, key) => {
    expect(await keyOf('10.0.0.1', forwarded, { trustedProxies: ['10.0.0.0/8'] })).toBe(key)
  })

  it('WEB-7 a proxy may be trusted by IPv6 address, by range, and through an IPv4-mapped peer', async () => {
    expect(await keyOf('2001:db8::5', '198.51.100.7', { trustedProxies: ['2001:db8::/32'] })).toBe('198.51.100.7')
    expect(await keyOf('2001:db8::5', '198.51.100.7', { trustedProxies: ['2001:db8::5'] })).toBe('198.51.100.7')
    expect(await keyOf('2001:db8::6', '198.51.100.7', { trustedProxies: ['2001:db8::5'] })).toBe('2001:db8::/64')
    expect(await keyOf('::ffff:10.0.0.1', '198.51.100.7', { trustedProxies: ['10.0.0.1'] })).toBe('198.51.100.7')
    expect(await keyOf('10.0.0.1', '198.51.100.7', { trustedProxies: ['::ffff:10.0.0.0/104'] })).toBe('198.51.100.7')
    expect(await keyOf('10.0.0.1', '198.51.100.7', { trustedProxies: ['0.0.0.0/0'] })).toBe('198.51.100.7')
    expect(await keyOf('2001:db8::5', '198.51.100.7', { trustedProxies: ['0.0.0.0/0'] })).toBe('2001:db8::/64')
  })

  it.each([
    '',
    'localhost',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '10.0.0/8',
    '::/129',
    '::ffff:10.0.0.0/90',
    '1::2::3',
  ])('WEB-7 %j cannot be a trusted proxy', (proxy) => {
    const getConnInfo = (): { remote: object } => ({ remote: {} })
    expect(() => clientAddress({ getConnInfo, trustedProxies: [proxy] })).toThrow(TypeError)
  })

  it.each([0, 129, 1.5, Number.NaN, -64])('WEB-7 an IPv6 prefix of %j bits is refused', (ipv6Prefix) => {
    expect(() => clientAddress({ getConnInfo: () => ({ remote: {} }), ipv6Prefix })).toThrow(RangeError)
  })
})
