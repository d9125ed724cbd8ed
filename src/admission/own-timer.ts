import { Alarm } from '../alarm.ts'
import type { Timeline } from '../clock.ts'
import type { Refusal } from '../refusal.ts'
import type { Lease } from './lease.ts'
import type { Waiter } from './waiter.ts'

/** How often a waiter looks for itself whether a rate that had room still has it. Milliseconds. */
const LOOK_MS = 50

/**
 * On workerd a request that waits must have a pending timer of its own, set and cleared in its own context; one that
 * another request set may never ring (RUN-3). So every waiter looks for itself: at its deadline, and before that when a
 * rate that it needs has room again.
 */
export async function onOwnTimer(
  waiter: Waiter,
  answer: Promise<Lease | Refusal>,
  timeline: Timeline,
  look: (nowMs: number) => void,
  nowMs: number,
): Promise<Lease | Refusal> {
  const alarm = new Alarm(timeline, (ringMs) => {
    look(ringMs)
    if (waiter.isWaiting) alarm.setBy(nextLookMs(waiter, ringMs))
  })
  alarm.setBy(nextLookMs(waiter, nowMs))
  try {
    return await answer
  } finally {
    alarm.clear()
  }
}

function nextLookMs({ lane, deadlineAtMs }: Waiter, nowMs: number): number {
  let nextMs = deadlineAtMs
  for (const { line } of lane.places) {
    if (line.resource.timed) nextMs = Math.min(nextMs, nowMs + (line.resource.msUntilRoom(nowMs, 0) || LOOK_MS))
  }
  return nextMs
}
