// Also a string that never ends, and a last lone backslash: it always matches, so it never looks back.
const QUOTED = /"(?:[^"\\]|\\.?)*(?:"|$)/gs

function withoutSeparators(quoted: string): string {
  return quoted.replace(/[,;=]/g, '_')
}

/** Does a `Prefer` field ask for `respond-async` (RFC 7240)? Names are case-insensitive; parameters do not matter. */
export function prefersAsync(prefer: string | undefined): boolean {
  if (prefer === undefined) return false
  for (const preference of prefer.replace(QUOTED, withoutSeparators).split(',')) {
    const [nameAndValue = ''] = preference.split(';', 1)
    const [name = '', value = ''] = nameAndValue.split('=', 2)
    // An empty value is the same as none; this preference takes no other.
    if (name.trim().toLowerCase() === 'respond-async' && (value.trim() === '' || value.trim() === '""')) return true
  }
  return false
}
