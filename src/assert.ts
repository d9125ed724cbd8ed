/** A count of ours is wrong: stop at the line where it went wrong, not where it shows. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`Sluice invariant broken: ${message}`)
}

/** The end of a switch over a union; a new member of the union no longer compiles here. */
export function unreachable(value: never): never {
  throw new Error(`Sluice invariant broken: unexpected ${String(value)}`)
}
