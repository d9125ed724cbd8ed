import { nextImmediate } from './host.ts'

/** How long the event loop could not turn, at the longest, while something was going on. */
export async function longestBlockMs(act: () => Promise<unknown>): Promise<number> {
  let isOver = false
  let longestMs = 0
  let lastMs = performance.now()
  void act().then(() => {
    isOver = true
  })
  while (!isOver) {
    await nextImmediate()
    const nowMs = performance.now()
    longestMs = Math.max(longestMs, nowMs - lastMs)
    lastMs = nowMs
  }
  return longestMs
}
