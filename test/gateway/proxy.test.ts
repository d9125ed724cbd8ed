import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import type { GatewayOptions, ProxyFailure, ProxyOptions } from '../../src/gateway.ts'
import { createAdmission } from '../../src/hono/create-admission.ts'
import { barrier } from '../support/core.ts'
import { cut, expectQuiet, flush, jsonOf, originOf, refused, setup } from './support.ts'

function chunks(...texts: readonly string[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const left = [...texts]
  return new ReadableStream({
    pull(controller) {
      const text = left.shift()
      if (text === undefined) controller.close()
      else controller.enqueue(encoder.encode(text))
    },
  })
}

/** A body that the test fills by hand. */
function manual(): {
  body: ReadableStream<Uint8Array>
  write(text: string): void
  end(): void
  fail(error: Error): void
  readonly cancelled: unknown
} {
  let push: ReadableStreamDefaultController<Uint8Array> | undefined
  let cancelled: unknown
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      push = controller
    },
    cancel(reason) {
      cancelled = reason ?? 'cancelled'
    },
  })
  return {
    body,
    write: (text) => push?.enqueue(new TextEncoder().encode(text)),
    end: () => push?.close(),
    fail: (error) => push?.error(error),
    get cancelled() {
      return cancelled
    },
  }
}

function request(
  method: string,
  body?: ReadableStream<Uint8Array> | string,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Request {
  const init: RequestInit & { duplex: 'half' } = { method, headers, duplex: 'half' }
  if (body !== undefined) init.body = body
  if (signal !== undefined) init.signal = signal
  return new Request('http://gateway.test/', init)
}

function activeOf({ gateway }: ReturnType<typeof setup>, id = 'a'): number | undefined {
  return gateway.upstreams.get(id)?.activeCount
}

function failing(
  ids: readonly string[],
  options: GatewayOptions = {},
  proxy: ProxyOptions = {},
): ReturnType<typeof setup> & { failures: ProxyFailure[] } {
  const failures: ProxyFailure[] = []
  const setupOf = setup(
    ids,
    { ejection: { connectErrors: 100 }, ...options },
    { onFailure: (failure) => failures.push(failure), ...proxy },
  )
  return Object.assign(setupOf, { failures })
}

describe('passing on', () => {
  it('GWY-3 method, path, query, headers and body reach the upstream as they are, and its answer the client', async () => {
    const setupOf = setup(['a'])
    const upstream = new Hono()
    upstream.all('*', async (c) => {
      c.header('x-answer', c.req.header('x-question') ?? '')
      c.header('set-cookie', 'one=1')
      c.header('set-cookie', 'two=2', { append: true })
      return c.text(`${c.req.method} ${c.req.url} ${await c.req.text()}`, 201)
    })
    setupOf.network.at(originOf('a'), upstream)
    const response = await setupOf.app.request('http://gateway.test/x%2Fy//z?q=%2F&q=2', {
      method: 'PATCH',
      body: 'hello',
      headers: { 'x-question': 'why' },
    })
    expect(response.status).toBe(201)
    expect(await response.text()).toBe('PATCH http://a.test/x%2Fy//z?q=%2F&q=2 hello')
    expect(response.headers.get('x-answer')).toBe('why')
    expect(response.headers.getSetCookie()).toEqual(['one=1', 'two=2'])
    expectQuiet(setupOf)
  })

  it('GWY-3 an upstream below a path keeps it, and rewritePath takes a prefix off', async () => {
    const setupOf = setup([], {}, { rewritePath: (path) => path.replace(/^\/api/, '') })
    setupOf.network.at('http://a.test', (sent) => new Response(sent.url))
    setupOf.register('a', { url: 'http://a.test/base/' })
    expect(await setupOf.ask('/api/orders?x=1')).toBe('http://a.test/base/orders?x=1')
    expect(await setupOf.ask('/api')).toBe('http://a.test/base/')
    expect(await setupOf.ask('/apiev.il.test/')).toBe('http://a.test/base/ev.il.test/')
    expect(await setupOf.ask('//ev.il.test/')).toBe('http://a.test/base//ev.il.test/')
  })

  it('GWY-3 a redirect of the upstream is passed on, not followed', async () => {
    const setupOf = setup(['a'])
    setupOf.network.at(originOf('a'), (sent) => {
      expect(sent.redirect).toBe('manual')
      return new Response(null, { status: 302, headers: { location: '/elsewhere' } })
    })
    const response = await setupOf.app.request('http://gateway.test/')
    expect([response.status, response.headers.get('location')]).toEqual([302, '/elsewhere'])
    expect(setupOf.network.requests).toHaveLength(1)
    expectQuiet(setupOf)
  })

  it('GWY-3 the request body streams through: the upstream has its first chunk before the last was sent', async () => {
    const setupOf = setup(['a'])
    const received: string[] = []
    setupOf.network.at(originOf('a'), async (sent) => {
      for await (const chunk of sent.body ?? []) received.push(new TextDecoder().decode(chunk))
      return new Response('done')
    })
    const upload = manual()
    const answer = setupOf.app.request(request('POST', upload.body))
    upload.write('one')
    await flush()
    expect(received).toEqual(['one'])
    upload.write('two')
    upload.end()
    expect(await (await answer).text()).toBe('done')
    expect(received).toEqual(['one', 'two'])
    expectQuiet(setupOf)
  })

  it('GWY-3 the response body streams through with backpressure, and counts until it has ended', async () => {
    const setupOf = setup(['a'])
    const download = manual()
    setupOf.network.at(originOf('a'), () => new Response(download.body))
    const response = await setupOf.app.request('http://gateway.test/')
    const reader = response.body?.getReader()
    download.write('one')
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('one')
    expect(activeOf(setupOf)).toBe(1)
    download.end()
    expect((await reader?.read())?.done).toBe(true)
    expect(activeOf(setupOf)).toBe(0)
    expectQuiet(setupOf)
  })

  it('GWY-3 c.var.upstream tells the middleware around it who answered', async () => {
    const setupOf = setup(['a'])
    const seen: (string | undefined)[] = []
    const app = new Hono<{ Variables: { upstream?: string } }>()
    app.use(async (c, next) => {
      await next()
      seen.push(c.get('upstream'))
    })
    app.all('*', setupOf.gateway.proxy())
    await (await app.request('http://gateway.test/')).text()
    expect(seen).toEqual(['a'])
  })
})

describe('what cannot be passed on', () => {
  it('GWY-3 a WebSocket upgrade, TRACE and the body of a GET are refused with 501, and nothing is sent', async () => {
    const setupOf = setup(['a'])
    for (const [method, headers, reason] of [
      ['GET', { upgrade: 'websocket', connection: 'Upgrade' }, 'upgrade_unsupported'],
      ['GET', { upgrade: 'h2c, WebSocket/13' }, 'upgrade_unsupported'],
      ['GET', { 'content-length': '5' }, 'body_unsupported'],
      ['HEAD', { 'transfer-encoding': 'chunked' }, 'body_unsupported'],
    ] as const) {
      const response = await setupOf.app.request('http://gateway.test/', { method, headers })
      expect(response.status).toBe(501)
      expect(response.headers.get('content-type')).toBe('application/problem+json')
      if (method === 'GET') expect(await jsonOf(response)).toMatchObject({ reason })
    }
    const trace = new Request('http://gateway.test/')
    Object.defineProperty(trace, 'method', { value: 'TRACE' }) // as node-server hands it on
    expect((await setupOf.app.request(trace)).status).toBe(501)
    expect(setupOf.network.requests).toHaveLength(0)
    expect(await setupOf.ask('/', { headers: { upgrade: 'h2c' } })).toBe('a') // which a server may ignore
  })
})

describe('a body that is gone', () => {
  it('GWY-5 a body that a middleware has read fails the request as its own mistake, and nothing is sent or counted', async () => {
    const setupOf = setup(['a'])
    const errors: string[] = []
    const app = new Hono()
    app.onError((error, c) => {
      errors.push(error.message)
      return c.text('', 500)
    })
    app.use(async (c, next) => {
      await c.req.text()
      await next()
    })
    app.all('*', setupOf.gateway.proxy())
    expect((await app.request('http://gateway.test/', { method: 'POST', body: 'x' })).status).toBe(500)
    expect(errors).toEqual(['Cannot proxy: the request body was read before the gateway could pass it on'])
    expect(setupOf.network.requests).toHaveLength(0)
    expectQuiet(setupOf)
  })
})

describe('counting', () => {
  it('GWY-3 HEAD, 204 and 304 count until their head only', async () => {
    const setupOf = setup(['a'])
    for (const [method, status] of [
      ['HEAD', 200],
      ['GET', 204],
      ['GET', 304],
    ] as const) {
      setupOf.network.at(originOf('a'), () => new Response(null, { status }))
      const response = await setupOf.app.request('http://gateway.test/', { method })
      expect([response.status, response.body, activeOf(setupOf)]).toEqual([status, null, 0])
    }
    expectQuiet(setupOf)
  })

  it('GWY-3 a body in the answer to HEAD is cancelled, for nobody will read it', async () => {
    const setupOf = setup(['a'])
    const download = manual()
    setupOf.network.at(originOf('a'), () => new Response(download.body, { headers: { 'content-length': '9' } }))
    const response = await setupOf.app.request('http://gateway.test/', { method: 'HEAD' })
    expect([response.body, response.headers.get('content-length'), activeOf(setupOf)]).toEqual([null, '9', 0])
    expect(download.cancelled).toBeDefined()
    expectQuiet(setupOf)
  })

  it('GWY-3 a body that fails while nobody reads counts no longer once that is noticed', async () => {
    const setupOf = setup(['a'])
    const download = manual()
    setupOf.network.at(originOf('a'), () => new Response(download.body))
    const response = await setupOf.app.request('http://gateway.test/')
    download.write('one')
    await response.body?.getReader().read()
    download.fail(new Error('reset'))
    await flush()
    expect(activeOf(setupOf)).toBe(1)
    setupOf.clock.advance(90_000)
    expectQuiet(setupOf)
  })

  it('GWY-3 a failing body reaches its reader as a failure', async () => {
    const setupOf = setup(['a'])
    const download = manual()
    setupOf.network.at(originOf('a'), () => new Response(download.body))
    const response = await setupOf.app.request('http://gateway.test/')
    const text = response.text()
    download.write('one')
    download.fail(new Error('reset'))
    await expect(text).rejects.toThrow('reset')
    expectQuiet(setupOf)
  })

  it('GWY-3 a client that leaves cancels the body at the upstream', async () => {
    const setupOf = setup(['a'])
    const download = manual()
    setupOf.network.at(originOf('a'), () => new Response(download.body))
    const response = await setupOf.app.request('http://gateway.test/')
    expect(activeOf(setupOf)).toBe(1)
    await response.body?.cancel('gone')
    expect(download.cancelled).toBe('gone')
    expectQuiet(setupOf)
  })

  it('GWY-3 a body that nobody reads is ended after stallTimeoutMs, and at most half as long again', async () => {
    const setupOf = setup(['a'], { stallTimeoutMs: 1000 })
    const download = manual()
    setupOf.network.at(originOf('a'), () => new Response(download.body))
    const dropping = new Hono()
    dropping.use(async (c, next) => {
      await next()
      c.res = new Response(null, { status: 304 })
    })
    dropping.all('*', setupOf.gateway.proxy())
    await dropping.request('http://gateway.test/')
    setupOf.clock.advance(999)
    expect(activeOf(setupOf)).toBe(1)
    setupOf.clock.advance(501)
    expect(activeOf(setupOf)).toBe(0)
    await flush()
    expect(String(download.cancelled)).toContain('1000 ms')
    expectQuiet(setupOf)
  })

  it('GWY-3 a reader that waits for a slow source is no stall, however long', async () => {
    const setupOf = setup(['a'], { stallTimeoutMs: 1000 })
    const download = manual()
    setupOf.network.at(originOf('a'), () => new Response(download.body))
    const text = setupOf.ask()
    await flush()
    setupOf.clock.advance(100_000)
    download.write('late')
    download.end()
    expect(await text).toBe('late')
    expectQuiet(setupOf)
  })

  it('GWY-3 many open bodies share one stall timer, and none is left when they ended', async () => {
    const setupOf = setup(['a'])
    const downloads = Array.from({ length: 20 }, manual)
    let next = 0
    setupOf.network.at(originOf('a'), () => new Response(downloads[next++]?.body ?? null))
    const responses = await Promise.all(downloads.map(() => setupOf.app.request('http://gateway.test/')))
    expect(setupOf.clock.pending).toBe(1)
    for (const response of responses) await response.body?.cancel()
    expectQuiet(setupOf)
  })

  it('GWY-3 what a draining upstream serves goes on and is counted', async () => {
    const setupOf = setup(['a'])
    const download = manual()
    setupOf.network.at(originOf('a'), () => new Response(download.body))
    const response = await setupOf.app.request('http://gateway.test/')
    setupOf.drain('a')
    expect(setupOf.gateway.upstreams.list().draining).toMatchObject([{ id: 'a', active: 1 }])
    download.write('rest')
    download.end()
    expect(await response.text()).toBe('rest')
    expect(setupOf.gateway.upstreams.list().draining).toMatchObject([{ id: 'a', active: 0 }])
    expectQuiet(setupOf)
  })

  it('GWY-3 what an old process still serves is not counted to its replacement', async () => {
    const setupOf = setup(['a'])
    const download = manual()
    setupOf.network.at(originOf('a'), () => new Response(download.body))
    const response = await setupOf.app.request('http://gateway.test/')
    setupOf.register('a', { generation: 1 })
    expect(activeOf(setupOf)).toBe(0)
    await response.body?.cancel()
    expectQuiet(setupOf)
  })
})

describe('the client leaves', () => {
  it('GWY-3 an abort before the answer aborts the request to the upstream, and nothing is retried', async () => {
    const setupOf = failing(['a', 'b'])
    for (const id of ['a', 'b']) setupOf.network.at(originOf(id), () => new Promise(() => {}))
    const client = new AbortController()
    const answer = setupOf.app.request(request('GET', undefined, {}, client.signal))
    await flush()
    client.abort()
    expect((await answer).status).toBe(499)
    expect(setupOf.network.requests).toHaveLength(1)
    expect(setupOf.network.requests[0]?.signal.aborted).toBe(true)
    expect(setupOf.failures).toEqual([])
    expectQuiet(setupOf)
  })

  it('GWY-3 a request that is aborted already is not sent', async () => {
    const setupOf = setup(['a'])
    expect((await setupOf.app.request(request('GET', undefined, {}, AbortSignal.abort()))).status).toBe(499)
    expect(setupOf.network.requests).toHaveLength(0)
    expectQuiet(setupOf)
  })

  it('GWY-3 an abort after the head aborts the upstream and counts no longer', async () => {
    const setupOf = setup(['a'])
    const download = manual()
    setupOf.network.at(originOf('a'), () => new Response(download.body))
    const client = new AbortController()
    const response = await setupOf.app.request(request('GET', undefined, {}, client.signal))
    client.abort()
    expect(setupOf.network.requests[0]?.signal.aborted).toBe(true)
    expect(activeOf(setupOf)).toBe(0)
    await response.body?.cancel()
    expectQuiet(setupOf)
  })
})

describe('failures', () => {
  it('GWY-5 a refused connection is retried once on another upstream, whatever the method', async () => {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const setupOf = failing(['a', 'b'])
      setupOf.network.at(originOf('a'), undefined)
      expect(await setupOf.ask('/', { method })).toBe('b')
      expect(setupOf.failures).toMatchObject([{ upstream: 'a', failure: 'unsent', isRetried: true }])
      expectQuiet(setupOf)
    }
  })

  it('GWY-5 once: two refused connections are a 502', async () => {
    const setupOf = failing(['a', 'b', 'c'])
    setupOf.network.at(originOf('a'), undefined)
    setupOf.network.at(originOf('b'), undefined)
    expect(await setupOf.ask()).toBe('502 upstream_unreachable')
    expect(setupOf.failures.map(({ upstream, isRetried }) => [upstream, isRetried])).toEqual([
      ['a', true],
      ['b', false],
    ])
    expect(setupOf.network.requests).toHaveLength(0)
    expectQuiet(setupOf)
  })

  it('GWY-5 with no other upstream a refused connection is a 502 with Retry-After at once', async () => {
    const setupOf = failing(['a'])
    setupOf.network.at(originOf('a'), undefined)
    const response = await setupOf.app.request('http://gateway.test/')
    expect([response.status, response.headers.get('retry-after')]).toEqual([502, '1'])
    expect(JSON.stringify(await response.json())).not.toContain('a.test')
    expect(setupOf.failures).toHaveLength(1)
    expectQuiet(setupOf)
  })

  it('GWY-5 a body that was handed to a dead upstream is not replayed', async () => {
    const setupOf = failing(['a', 'b'])
    setupOf.network.at(originOf('a'), async (sent) => {
      await sent.body?.getReader().read() // as Node and Deno do before they connect
      throw refused()
    })
    expect(await setupOf.ask('/', { method: 'POST', body: 'order' })).toBe('502 upstream_unreachable')
    expect(setupOf.network.origins).toEqual(['http://a.test'])
    expect(setupOf.failures).toMatchObject([{ failure: 'unsent', isRetried: false }])
    expectQuiet(setupOf)
  })

  it('GWY-5 a body that nothing has touched goes to the other upstream whole', async () => {
    const setupOf = failing(['a', 'b'])
    setupOf.network.at(originOf('a'), () => {
      throw refused() // as Bun does: it connects first
    })
    setupOf.network.at(originOf('b'), async (sent) => new Response(await sent.text()))
    const response = await setupOf.app.request(request('POST', chunks('or', 'der')))
    expect(await response.text()).toBe('order')
    expectQuiet(setupOf)
  })

  it('GWY-5 an empty body by its declared length is none', async () => {
    const setupOf = failing(['a', 'b'])
    setupOf.network.at(originOf('a'), async (sent) => {
      expect(sent.body).toBeNull()
      throw refused()
    })
    const response = await setupOf.app.request(request('POST', '', { 'content-length': '0' }))
    expect(await response.text()).toBe('b')
  })

  it('GWY-5 a cut connection is retried for safe methods without body only', async () => {
    for (const [method, body, answer] of [
      ['GET', undefined, 'b'],
      ['HEAD', undefined, ''],
      ['OPTIONS', undefined, 'b'],
      ['DELETE', undefined, '502 upstream_failed'],
      ['PUT', 'x', '502 upstream_failed'],
      ['POST', 'x', '502 upstream_failed'],
      ['OPTIONS', 'x', '502 upstream_failed'],
    ] as const) {
      const setupOf = failing(['a', 'b'])
      setupOf.network.at(originOf('a'), () => {
        throw cut()
      })
      expect(await setupOf.ask('/', body === undefined ? { method } : { method, body })).toBe(answer)
      expect(setupOf.failures[0]).toMatchObject({ upstream: 'a', failure: 'cut' })
      expect(setupOf.lists()[0]).toEqual(['a', 'b']) // an idle socket that was closed is no ejection
      expectQuiet(setupOf)
    }
  })

  it('GWY-5 a cut connection to the only upstream is retried there, once', async () => {
    const setupOf = failing(['a'])
    let tries = 0
    setupOf.network.at(originOf('a'), () => {
      tries += 1
      if (tries === 1) throw cut()
      return new Response('again')
    })
    expect(await setupOf.ask()).toBe('again')
    setupOf.network.at(originOf('a'), () => {
      throw cut()
    })
    expect(await setupOf.ask()).toBe('502 upstream_failed')
    expect(setupOf.network.requests).toHaveLength(4)
    expectQuiet(setupOf)
  })

  it('GWY-5 what is not recognised is retried elsewhere for safe methods only', async () => {
    for (const [method, answer] of [
      ['GET', 'b'],
      ['POST', '502 upstream_failed'],
    ] as const) {
      const setupOf = failing(['a', 'b'])
      setupOf.network.at(originOf('a'), () => {
        throw new Error('the moon is full')
      })
      expect(await setupOf.ask('/', { method })).toBe(answer)
      setupOf.gateway.upstreams.apply([{ type: 'offline', id: 'b' }])
      expect(await setupOf.ask('/', { method })).toBe('502 upstream_failed')
      expectQuiet(setupOf)
    }
  })

  it('GWY-5 nothing is retried after an answer, whatever its status', async () => {
    const setupOf = failing(['a', 'b'])
    setupOf.network.at(originOf('a'), () => new Response('busy', { status: 503, headers: { 'retry-after': '7' } }))
    const response = await setupOf.app.request('http://gateway.test/')
    expect([response.status, response.headers.get('retry-after'), await response.text()]).toEqual([503, '7', 'busy'])
    expect(setupOf.network.requests).toHaveLength(1)
    expectQuiet(setupOf)
  })

  it('GWY-5 an answer that cannot be passed on is no reason to ask again, nor a connect error', async () => {
    const setupOf = failing(['a', 'b'])
    setupOf.network.at(originOf('a'), () => Response.error()) // a status that no response can be made with
    expect(await setupOf.ask()).toBe('502 upstream_failed')
    expect(setupOf.network.origins).toEqual(['http://a.test'])
    expect(setupOf.failures).toMatchObject([{ upstream: 'a', failure: 'unknown', isRetried: false }])
    expectQuiet(setupOf)
  })

  it('GWY-5 an answer that cannot be passed on is let go of, so that its connection is', async () => {
    const setupOf = failing(['a', 'b'])
    const download = manual()
    const odd = new Response(download.body)
    Object.defineProperty(odd, 'status', { value: 999 })
    setupOf.network.at(originOf('a'), () => odd)
    expect(await setupOf.ask()).toBe('502 upstream_failed')
    expect(download.cancelled).toBeDefined()
    expectQuiet(setupOf)
  })

  it('GWY-5 no answer in time is a 504, one deadline for the retry too, and a late answer is dropped', async () => {
    const setupOf = failing(['a', 'b'], {}, { timeoutMs: 1000 })
    const download = manual()
    const late = barrier<Response>()
    setupOf.network.at(originOf('a'), () => {
      setupOf.clock.advance(400)
      throw refused()
    })
    setupOf.network.at(originOf('b'), () => late.promise)
    const answer = setupOf.ask()
    await flush()
    setupOf.clock.advance(599)
    expect(activeOf(setupOf, 'b')).toBe(1)
    setupOf.clock.advance(1)
    expect(await answer).toBe('504 upstream_timeout')
    expect(setupOf.failures.map(({ failure }) => failure)).toEqual(['unsent', 'timeout'])
    late.resolve(new Response(download.body))
    await flush()
    expect(download.cancelled).toBeDefined()
    expectQuiet(setupOf)
  })

  it('GWY-5 the deadline is for the head: a body may take as long as it likes', async () => {
    const setupOf = setup(['a'], {}, { timeoutMs: 10 })
    const download = manual()
    setupOf.network.at(originOf('a'), () => new Response(download.body))
    const text = setupOf.ask()
    await flush()
    setupOf.clock.advance(1000)
    download.write('slow')
    download.end()
    expect(await text).toBe('slow')
    expectQuiet(setupOf)
  })

  it('GWY-3 a hook that takes the only upstream out leaves nothing to retry on, and fails nobody', async () => {
    for (const type of ['offline', 'draining'] as const) {
      const setupOf = failing(
        ['a'],
        {},
        { onFailure: ({ upstream }) => setupOf.gateway.upstreams.apply([{ type, id: upstream }]) },
      )
      setupOf.network.at(originOf('a'), () => {
        throw cut()
      })
      expect(await setupOf.ask()).toBe('502 upstream_failed')
      expect(setupOf.network.requests).toHaveLength(1)
      expectQuiet(setupOf)
    }
  })

  it('GWY-3 a hook that marks every upstream draining keeps the retry from each of them', async () => {
    for (const failure of [cut(), refused(), new Error('the moon is full')]) {
      const setupOf = failing(
        ['a', 'b'],
        {},
        {
          onFailure: () => {
            for (const id of ['a', 'b']) setupOf.drain(id)
          },
        },
      )
      setupOf.network.at(originOf('a'), () => {
        throw failure
      })
      expect(await setupOf.ask()).toMatch(/^502 /)
      expect(setupOf.network.origins).toEqual(['http://a.test'])
      expectQuiet(setupOf)
    }
  })

  it('GWY-5 a hook is told of a retry only if there was an upstream for it', async () => {
    for (const [ids, makeError, isRetried] of [
      [['a'], refused, false],
      [['a'], cut, true],
      [['a', 'b'], refused, true],
    ] as const) {
      const setupOf = failing(ids)
      setupOf.network.at(originOf('a'), () => {
        throw makeError()
      })
      await setupOf.ask()
      expect(setupOf.failures[0]?.isRetried).toBe(isRetried)
      expectQuiet(setupOf)
    }
  })

  it('GWY-5 a hook that throws fails nobody', async () => {
    const onFailure = (): void => {
      throw new Error('hook')
    }
    const setupOf = failing(['a', 'b'], {}, { onFailure })
    setupOf.network.at(originOf('a'), undefined)
    expect(await setupOf.ask()).toBe('b')
  })
})

describe('codings', () => {
  it('GWY-3 a body that the runtime has decoded loses the header and length that are no longer true', async () => {
    const setupOf = setup(['a'])
    for (const coding of ['gzip', 'br', 'x-gzip', 'deflate, gzip']) {
      setupOf.network.at(
        originOf('a'),
        () => new Response('plain', { headers: { 'content-encoding': coding, 'content-length': '99' } }),
      )
      const response = await setupOf.app.request('http://gateway.test/', { headers: { 'accept-encoding': 'compress' } })
      expect([response.headers.get('content-encoding'), response.headers.get('content-length')]).toEqual([null, null])
      expect(await response.text()).toBe('plain')
    }
    expect(setupOf.network.requests[0]?.headers.get('accept-encoding')).toBeNull() // the runtime asks for what it can decode
  })

  it('GWY-3 a coding that nobody decodes keeps its name', async () => {
    const setupOf = setup(['a'])
    for (const coding of ['dcb', 'compress', 'gzip, aws-chunked']) {
      setupOf.network.at(originOf('a'), () => new Response('coded', { headers: { 'content-encoding': coding } }))
      const response = await setupOf.app.request('http://gateway.test/')
      expect(response.headers.get('content-encoding')).toBe(coding)
      await response.text()
    }
  })
})

describe('admission', () => {
  it('GWY-8 the gateway mounts admission like any other app', async () => {
    const setupOf = setup(['a'])
    const admission = createAdmission({
      clock: setupOf.clock,
      config: { contracts: { '/': { concurrency: 1, holdUntil: 'body' } } },
    })
    const download = manual()
    setupOf.network.at(originOf('a'), () => new Response(download.body))
    const app = new Hono()
    app.use(admission.middleware())
    app.all('/*', setupOf.gateway.proxy())
    const first = await app.request('http://gateway.test/')
    const second = await app.request('http://gateway.test/')
    expect([first.status, second.status]).toEqual([200, 503])
    expect(await jsonOf(second)).toMatchObject({ reason: 'concurrency' })
    expect(setupOf.network.requests).toHaveLength(1)
    download.end()
    await first.text()
    expect(admission.core.snapshot().active).toBe(0)
    expectQuiet(setupOf)
  })
})
