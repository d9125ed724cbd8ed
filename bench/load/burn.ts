/** So many steps of arithmetic. Each depends on the last one, and the answer on all, so that none can be left out. */
export function burn(steps: number): number {
  let state = 0x2545f491
  for (let left = steps; left > 0; left -= 1) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
  }
  return state >>> 0
}

const WARM_MS = 100
const STEPS = 200_000
const SAMPLES = 40

/** How many steps take so long on this machine: a handler that looked at the clock would do less when it is held up. */
export function stepsFor(ms: number): number {
  const endMs = performance.now() + WARM_MS
  while (performance.now() < endMs) burn(STEPS)
  let leastMs = Number.POSITIVE_INFINITY // the others were interrupted
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    const startMs = performance.now()
    burn(STEPS)
    leastMs = Math.min(leastMs, performance.now() - startMs)
  }
  return Math.round((ms / leastMs) * STEPS)
}
