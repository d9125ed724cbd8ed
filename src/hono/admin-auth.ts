import type { Context } from 'hono'
import { bearerAuth } from 'hono/bearer-auth'
import { HTTPException } from 'hono/http-exception'
import { timingSafeEqual } from 'hono/utils/buffer'

/** `write` may do everything, `read` all that changes nothing. */
export type AdminRole = 'read' | 'write'

/** Who asked, for the audit log (ADX-5): never the token, but its place in the list; no place when `verify` knew it. */
export interface AdminIdentity {
  readonly role: AdminRole
  readonly index?: number
}

/** Who may use the admin route (ADX-1). At least one token or `verify` is required. */
export interface AdminOptions {
  /** Bearer tokens by role. Each must be one that RFC 6750 can carry: letters, digits, `-._~+/`, then `=`. */
  readonly tokens?: { readonly [role in AdminRole]?: readonly string[] }
  /** Asked when no token matches. An error, and everything but the two roles, counts as `false`. */
  readonly verify?: (token: string, c: Context) => AdminRole | false | Promise<AdminRole | false>
}

const ROLES: readonly AdminRole[] = ['read', 'write']
const BEARER_TOKEN = /^[A-Za-z0-9._~+/-]+=*$/

interface KnownToken {
  readonly token: string
  readonly identity: AdminIdentity
}

function knownTokens(options: AdminOptions): readonly KnownToken[] {
  const known: KnownToken[] = []
  for (const role of ROLES) {
    for (const [index, token] of (options.tokens?.[role] ?? []).entries()) {
      // An unset environment variable must not open the door, nor one with a line break lock it for good.
      if (typeof token !== 'string' || !BEARER_TOKEN.test(token)) {
        throw new TypeError(
          `Cannot open the admin route: ${role} token ${index} is empty or no bearer token (RFC 6750)`,
        )
      }
      known.push({ token, identity: { role, index } })
    }
  }
  if (known.length === 0 && options.verify === undefined) {
    throw new TypeError('Cannot open the admin route: it needs a token or a verify function')
  }
  return known
}

/**
 * Who sends a request, by its bearer token; `undefined` for a missing, malformed or wrong one alike.
 *
 * Every known token is compared, in constant time, so that the time taken does not tell which was close.
 *
 * @throws {TypeError} when there is neither a token nor `verify`, or an unusable token: it never starts open.
 */
export function adminAuth(options: AdminOptions): (c: Context) => Promise<AdminIdentity | undefined> {
  const known = knownTokens(options)
  const identities = new WeakMap<Context, AdminIdentity>()

  const identify = async (token: string, c: Context): Promise<AdminIdentity | undefined> => {
    const matches = await Promise.all(known.map((candidate) => timingSafeEqual(candidate.token, token)))
    // From the back: of a token that is listed for both roles, `write` counts.
    const match = known[matches.lastIndexOf(true)]
    if (match !== undefined) return match.identity
    try {
      const role = await options.verify?.(token, c)
      return role === 'read' || role === 'write' ? { role } : undefined
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
