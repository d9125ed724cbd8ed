const SHOWN_CHARACTERS = 32

/** Names a bad value in a message: short, and never more of a document than one scalar. Runs no code of the value. */
export function show(value: unknown): string {
  switch (typeof value) {
    case 'undefined':
      return 'nothing'
    case 'string':
      return showString(value)
    case 'number':
      return Object.is(value, -0) ? '-0' : String(value)
    case 'boolean':
      return String(value)
    case 'object':
      return value === null ? 'null' : Array.isArray(value) ? 'an array' : 'an object'
    case 'bigint':
      return 'a BigInt' // its digits would cost quadratic time
    default:
      return `a ${typeof value}`
  }
}

function showString(value: string): string {
  if (value.length <= SHOWN_CHARACTERS) return JSON.stringify(value)
  return `${JSON.stringify(value.slice(0, SHOWN_CHARACTERS))}… (${value.length} characters)`
}
