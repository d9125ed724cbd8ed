import { describe, expect, it } from 'vitest'
import { classifyFetchFailure } from '../../src/gateway.ts'

/** What each runtime was seen to throw: Node 20 has the code on a cause, Bun 1 on the error, Deno 2 in a message. */
function node(code: string, more: object = {}): Error {
  return new TypeError('fetch failed', { cause: Object.assign(new Error(`x ${code}`), { code, ...more }) })
}
function bun(code: string): Error {
  return Object.assign(new TypeError(`${code}: Unable to connect.`), { code })
}
function deno(message: string): Error {
  return new TypeError('fetch failed', { cause: new Error(message) })
}

const URL_IN_MESSAGE = 'error sending request for url (http://127.0.0.1:45979/)'

describe('classifyFetchFailure', () => {
  it('GWY-5 a connection that was never made is unsent, on each runtime', () => {
    for (const error of [
      node('ECONNREFUSED', { syscall: 'connect' }),
      node('ENOTFOUND', { syscall: 'getaddrinfo' }),
      node('EAI_AGAIN'),
      node('EHOSTUNREACH', { syscall: 'connect' }),
      node('UND_ERR_CONNECT_TIMEOUT'),
      node('ETIMEDOUT', { syscall: 'connect' }),
      node('ECONNRESET', { syscall: 'connect' }),
      bun('ECONNREFUSED'),
      bun('ConnectionRefused'),
      bun('FailedToOpenSocket'),
      deno(`${URL_IN_MESSAGE}: client error (Connect): tcp connect error: Connection refused (os error 111)`),
      deno(`${URL_IN_MESSAGE}: client error (Connect): dns error: failed to lookup address information`),
      deno(`${URL_IN_MESSAGE}: client error (Connect): tcp connect error: Connection reset by peer (os error 104)`),
    ]) {
      expect(classifyFetchFailure(error), String(error.cause ?? error)).toBe('unsent')
    }
  })

  it('GWY-5 a connection that ended before the answer is cut, on each runtime', () => {
    for (const error of [
      node('ECONNRESET', { syscall: 'read' }),
      node('EPIPE', { syscall: 'write' }),
      node('UND_ERR_SOCKET'),
      bun('ECONNRESET'),
      deno('Connection reset by peer (os error 104)'),
      deno(
        'error sending request from 127.0.0.1:4 for http://x/ (127.0.0.1:4): client error (SendRequest): connection closed before message completed',
      ),
    ]) {
      expect(classifyFetchFailure(error), String(error.cause ?? error)).toBe('cut')
    }
  })

  it('GWY-5 of several addresses each must have failed to connect', () => {
    const one = (code: string): Error => Object.assign(new Error(code), { code, syscall: 'connect' })
    const all = (...errors: Error[]): Error => new TypeError('fetch failed', { cause: new AggregateError(errors) })
    expect(classifyFetchFailure(all(one('ECONNREFUSED'), one('ENETUNREACH')))).toBe('unsent')
    expect(classifyFetchFailure(all(one('ECONNREFUSED'), new Error('other')))).toBe('unknown')
    expect(classifyFetchFailure(all())).toBe('unknown')
  })

  it('GWY-5 a network that went away under a request may have carried it: only a failed connect is unsent', () => {
    for (const code of ['EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'ENETDOWN']) {
      expect(classifyFetchFailure(node(code, { syscall: 'connect' })), code).toBe('unsent')
      for (const more of [{ syscall: 'read' }, { syscall: 'write' }, {}]) {
        expect(classifyFetchFailure(node(code, more)), code).toBe('unknown')
      }
      expect(classifyFetchFailure(bun(code)), code).toBe('unknown')
    }
    // An ICMP message can end an established connection by this code too.
    for (const syscall of ['read', 'write']) {
      expect(classifyFetchFailure(node('ECONNREFUSED', { syscall }))).toBe('unknown')
    }
    const one = (code: string, syscall: string): Error => Object.assign(new Error(code), { code, syscall })
    const mixed = new AggregateError([one('ECONNREFUSED', 'connect'), one('EHOSTUNREACH', 'write')])
    expect(classifyFetchFailure(new TypeError('fetch failed', { cause: mixed }))).toBe('unknown')
  })

  it('GWY-5 what is not recognised is unknown: never a guess from a name that only looks alike', () => {
    const circle = new Error('circle')
    circle.cause = circle
    for (const error of [
      undefined,
      null,
      'ECONNREFUSED',
      { code: 'ECONNREFUSED' },
      new Error('ECONNREFUSED'),
      node('ETIMEDOUT', { syscall: 'read' }),
      node('ERR_SSL_WRONG_VERSION_NUMBER'),
      node('HPE_INVALID_CONSTANT'),
      node('UND_ERR_HEADERS_TIMEOUT'),
      new DOMException('aborted', 'AbortError'),
      new TypeError('Failed to construct Request'),
      deno(
        'error sending request for url (http://x/?client%20error%20(Connect)): client error (SendRequest): invalid HTTP version parsed',
      ),
      circle,
    ]) {
      expect(classifyFetchFailure(error), String(error)).toBe('unknown')
    }
  })
})
