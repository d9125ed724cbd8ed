/** What an upstream URL text is: its base, to which a path that starts with `/` is appended, or what is wrong with it. */
export type UpstreamUrl =
  | { readonly kind: 'base'; readonly base: string }
  | { readonly kind: 'wrong'; readonly why: string }

/** Reads an absolute http or https URL without credentials, query and fragment; a path prefix is kept. Never echoes it. */
export function parseUpstreamUrl(text: string): UpstreamUrl {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return { kind: 'wrong', why: 'must be an absolute URL' }
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return { kind: 'wrong', why: 'must be http or https' }
  if (url.username !== '' || url.password !== '') return { kind: 'wrong', why: 'must not contain credentials' }
  if (/[?#]/.test(text)) return { kind: 'wrong', why: 'must not contain a query or a fragment' }
  return { kind: 'base', base: `${url.origin}${url.pathname.replace(/\/+$/, '')}` }
}
