import type { Context } from 'hono'
import { bearerIdentity, isBearerToken, type KnownToken } from './bearer.ts'

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

function knownTokens(options: AdminOptions): readonly KnownToken<AdminIdentity>[] {
  // `write` comes last: of a token that is listed for both roles, it counts.
  const known: KnownToken<AdminIdentity>[] = []
  for (const role of ROLES) {
    for (const [index, token] of (options.tokens?.[role] ?? []).entries()) {
      if (!isBearerToken(token)) {
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
 * Who asks the admin route, as {@link bearerIdentity} tells.
 *
 * @throws {TypeError} when there is neither a token nor `verify`, or an unusable token: it never starts open.
 */
export function adminAuth(options: AdminOptions): (c: Context) => Promise<AdminIdentity | undefined> {
  return bearerIdentity(knownTokens(options), async (token, c) => {
    const role = await options.verify?.(token, c)
    return role === 'read' || role === 'write' ? { role } : undefined
  })
}
