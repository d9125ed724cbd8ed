/** Whole numbers from 0 up to but not including `below`, the same ones for the same seed. */
export type Random = (below: number) => number

/** A small generator for random tests; print the seed, so that a failure can be played again. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0
  return (below) => {
    // A Weyl sequence through an avalanche of multiplications: good enough for tests, and exact on every runtime.
    state = (state + 0x9e3779b9) >>> 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return Math.floor((((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32) * below)
  }
}
