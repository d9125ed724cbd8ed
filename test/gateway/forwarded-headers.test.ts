import type { GetConnInfo } from 'hono/conninfo'
import { describe, expect, it } from 'vitest'
import { createGateway, type ProxyOptions } from '../../src/gateway.ts'
import { jsonOf, originOf, setup } from './support.ts'

/** The headers that reach the upstream, and those that reach the client, for a request with these. */
async function through(
  headers: Record<string, string>,
  options: ProxyOptions = {},
  url = 'http://gateway.test/',
  answer: Record<string, string> = {},
): Promise<{ sent: Record<string, unknown>; received: Headers }> {
  const { app, network } = setup(['a'], {}, options)
  network.at(originOf('a'), (request) => Response.json(Object.fromEntries(request.headers), { headers: answer }))
  const response = await app.request(url, { headers })
  return { sent: await jsonOf(response), received: response.headers }
}

function peer(address: string | undefined): GetConnInfo {
  return () => ({ remote: address === undefined ? {} : { address, addressType: undefined } })
}

describe('hop by hop', () => {
  it('GWY-3 no header of the hop, nor one that Connection names, reaches the upstream', async () => {
    const { sent } = await through({
      connection: 'keep-alive, X-Hop , bad name',
      'x-hop': '1',
      'keep-alive': 'timeout=5',
      'proxy-authorization': 'Basic x',
      'proxy-connection': 'keep-alive',
      te: 'trailers',
      trailer: 'x',
      upgrade: 'h2c',
      'http2-settings': 'x',
      expect: '100-continue',
      authorization: 'Bearer end-to-end',
      cookie: 'a=1',
    })
    expect(Object.keys(sent).sort()).toEqual([
      'authorization',
      'cookie',
      'forwarded',
      'x-forwarded-host',
      'x-forwarded-proto',
    ])
  })

  it('GWY-3 no header of the hop reaches the client', async () => {
    const { received } = await through({}, {}, 'http://gateway.test/', {
      connection: 'x-hop, close',
      'x-hop': '1',
      'keep-alive': 'timeout=5',
      'proxy-authenticate': 'Basic',
      upgrade: 'h2c',
      'x-end': '1',
    })
    for (const name of ['connection', 'x-hop', 'keep-alive', 'proxy-authenticate', 'upgrade', 'transfer-encoding']) {
      expect(received.has(name)).toBe(false)
    }
    expect(received.get('x-end')).toBe('1')
  })

  it('GWY-3 a length without a body is not passed on, for some runtimes refuse to send it', async () => {
    const { app, network } = setup(['a'])
    network.at(originOf('a'), (request) => Response.json(Object.fromEntries(request.headers)))
    const sent = await jsonOf(
      await app.request('http://gateway.test/', { method: 'POST', headers: { 'content-length': '0' } }),
    )
    expect(sent['content-length']).toBeUndefined()
  })
})

describe('who asked', () => {
  it('GWY-3 Host is left to the upstream, the one asked for is in X-Forwarded-Host', async () => {
    const { sent } = await through(
      { host: 'shop.example:8080' },
      { getConnInfo: peer('192.0.2.1') },
      'https://gateway.test/',
    )
    expect(sent.host).toBeUndefined()
    expect(sent).toMatchObject({
      'x-forwarded-for': '192.0.2.1',
      'x-forwarded-host': 'shop.example:8080',
      'x-forwarded-proto': 'https',
      forwarded: 'for=192.0.2.1;host="shop.example:8080";proto=https',
    })
  })

  const CLAIMS = {
    forwarded: 'for=6.6.6.6',
    'x-forwarded-for': '6.6.6.6',
    'x-forwarded-host': 'bank.example',
    'x-forwarded-proto': 'https',
    'x-forwarded-prefix': '/x',
    'x-real-ip': '6.6.6.6',
  }

  it('GWY-3 a peer that is not trusted cannot claim to be another', async () => {
    for (const trustedProxies of [
      undefined,
      false,
      ['10.0.0.0/8', '2001:db8::1'],
      (it: string) => it !== '192.0.2.1',
    ]) {
      const options = trustedProxies === undefined ? {} : { trustedProxies }
      const { sent } = await through(CLAIMS, { getConnInfo: peer('192.0.2.1'), ...options })
      expect(sent).toEqual({
        forwarded: 'for=192.0.2.1;host="gateway.test";proto=http',
        'x-forwarded-for': '192.0.2.1',
        'x-forwarded-host': 'gateway.test',
        'x-forwarded-proto': 'http',
      })
    }
  })

  it('GWY-3 what a trusted proxy says is kept and extended, and Connection cannot erase it', async () => {
    for (const trustedProxies of [true, ['192.0.2.9', '10.0.0.0/8'], (address: string) => address === '10.0.0.1']) {
      const headers = { ...CLAIMS, connection: 'x-forwarded-for, forwarded, x-real-ip' }
      const { sent } = await through(headers, { getConnInfo: peer('10.0.0.1'), trustedProxies })
      expect(sent).toEqual({
        forwarded: 'for=6.6.6.6, for=10.0.0.1;host="gateway.test";proto=http',
        'x-forwarded-for': '6.6.6.6, 10.0.0.1',
        'x-forwarded-host': 'bank.example',
        'x-forwarded-proto': 'https',
        'x-forwarded-prefix': '/x',
        'x-real-ip': '6.6.6.6',
      })
    }
  })

  it('GWY-3 whom nobody can trust like that is said when the handler is made', () => {
    const { proxy } = createGateway()
    const getConnInfo = peer('10.0.0.1')
    expect(() => proxy({ getConnInfo, trustedProxies: ['10.0.0.0/33'] })).toThrow("'10.0.0.0/33'")
    expect(() => proxy({ trustedProxies: ['10.0.0.1'] })).toThrow(/needs getConnInfo/)
    expect(() => proxy({ trustedProxies: () => true })).toThrow(/needs getConnInfo/)
    const text: ReturnType<typeof JSON.parse> = '10.0.0.1'
    expect(() => proxy({ getConnInfo, trustedProxies: text })).toThrow(TypeError)
  })

  it('GWY-3 a peer that the runtime does not tell is unknown, and trusted by no list or function', async () => {
    const failing: GetConnInfo = () => {
      throw new TypeError('no connection')
    }
    for (const getConnInfo of [peer(undefined), failing]) {
      for (const trustedProxies of [() => true, ['0.0.0.0/0', '::/0']]) {
        const { sent } = await through(CLAIMS, { getConnInfo, trustedProxies })
        expect(sent).toEqual({
          forwarded: 'for=unknown;host="gateway.test";proto=http',
          'x-forwarded-host': 'gateway.test',
          'x-forwarded-proto': 'http',
        })
      }
    }
  })

  it('GWY-3 IPv6 is bracketed and quoted where RFC 7239 wants it; a mapped IPv4 address is one; zones stay here', async () => {
    for (const [address, plain, node] of [
      ['2001:db8::1', '2001:db8::1', '"[2001:db8::1]"'],
      ['::ffff:192.0.2.7', '192.0.2.7', '192.0.2.7'],
      ['fe80::1%eth0', 'fe80::1', '"[fe80::1]"'],
    ] as const) {
      const { sent } = await through({}, { getConnInfo: peer(address) })
      expect(sent['x-forwarded-for']).toBe(plain)
      expect(sent.forwarded).toBe(`for=${node};host="gateway.test";proto=http`)
    }
  })

  it('GWY-3 a Host that contains quotes cannot add parameters', async () => {
    const { sent } = await through({ host: 'x";for="6.6.6.6\\' })
    expect(sent.forwarded).toBe('for=unknown;host="x;for=6.6.6.6";proto=http')
  })
})
