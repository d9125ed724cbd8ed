import type { Context } from 'hono'
import { bearerAuth } from 'hono/bearer-auth'
import { HTTPException } from 'hono/http-exception'
import { timingSafeEqual } from 'hono/utils/buffer'

const BEARER_TOKEN = /^[A-Za-z0-9._~+/-]+=*$/

/** A token that may come, and whom it tells. */
export interface KnownToken<Identity> {
  readonly token: string
  readonly identity: Identity
}

/** Whether a request can carry it: an unset environment variable must not open a door, nor one with a line break lock it. */
export function isBearerToken(token: unknown): token is string {
  return typeof token === 'string' && BEARER_TOKEN.test(token)
}

/**
 * Who sends a request, by its bearer token; `undefined` for a missing, malformed or wrong one alike (ADX-1).
 *
 * Every known token is compared, in constant time, so that the time taken does not tell which was close; of one that is
 * listed twice the later counts. `verify` is asked when none matches; an error is as good as `undefined`.
 */
export function bearerIdentity<Identity>(
  known: readonly KnownToken<Identity>[],
  verify: (token: string, c: Context) => Promise<Identity | undefined>,
): (c: Context) => Promise<Identity | undefined> {
  const identities = new WeakMap<Context, Identity>()

  const identify = async (token: string, c: Context): Promise<Identity | undefined> => {
    const matches = await Promise.all(known.map((candidate) => timingSafeEqual(candidate.token, token)))
    const match = known[matches.lastIndexOf(true)]
    if (match !== undefined) return match.identity
    try {
      return await verify(token, c)
    } catch {
      return undefined
    }
  }

  const bearer = bearerAuth({
    verifyToken: async (token, c) => {
      const identity = await identify(token, c)
      if (identity !== undefined) identities.set(c, identity)
      return identity !== undefined
    },
  })

  return async (c) => {
    try {
      await bearer(c, async () => {})
    } catch (error) {
      if (error instanceof HTTPException) return undefined
      throw error
    }
    return identities.get(c)
  }
}
