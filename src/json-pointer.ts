/** The name of a member as a step of a JSON Pointer (RFC 6901), with the slash before it. */
export function pointerStep(name: string): string {
  const withoutTildes = name.includes('~') ? name.replaceAll('~', '~0') : name
  return `/${withoutTildes.replace(/\//g, '~1')}` // in half the time of `replaceAll` (`update.difference`)
}
