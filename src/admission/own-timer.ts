import { Alarm } from '../alarm.ts'
import type { Timeline } from '../clock.ts'
import type { Refusal } from '../refusal.ts'
import type { Lease } from './lease.ts'
import type { Waiter } from './waiter.ts'

/** How often a waiter looks for itself whether a rate that had room still has it. Milliseconds. */
const LOOK_MS = 50
/** Who cannot be woken looks this often at first, and then each time it has waited a tenth longer, up to {@link LOOK_MS}. */
const FIRST_LOOK_MS = 5

/**
 * On workerd a request that waits must have a pending timer of its own, set and cleared in its own context; one that
 * another request set may never ring (RUN-3). So every waiter looks for itself: at its deadline, and before that when a
 * rate that it needs has room again.
 */
export async function onOwnTimer(
  waiter: Waiter,
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
    return await waiter.answered
  } finally {
    alarm.clear()
  }
}

/**
 * Where a request cannot wake another one either (workerd before 2024-10-14: what follows runs in the place of the one
 * that wakes, or never), a waiter awaits nothing but its own timer until it has its answer.
 */
export async function onOwnLooks(
  waiter: Waiter,
  timeline: Timeline,
  look: (nowMs: number) => void,
  nowMs: number,
): Promise<Lease | Refusal> {
  const { enqueuedAtMs, deadlineAtMs } = waiter
  for (let lookedAtMs = nowMs; waiter.isWaiting; lookedAtMs = timeline.nowMs()) {
    if (lookedAtMs > enqueuedAtMs) look(lookedAtMs)
    if (!waiter.isWaiting) break
    const pauseMs = Math.min(Math.max(FIRST_LOOK_MS, Math.floor((lookedAtMs - enqueuedAtMs) / 10)), LOOK_MS)
    await new Promise<void>((resolve) => {
      timeline.callAt(Math.min(lookedAtMs + pauseMs, deadlineAtMs), resolve)
    })
  }
  return await waiter.answered
}

function nextLookMs({ lane, deadlineAtMs }: Waiter, nowMs: number): number {
  let nextMs = deadlineAtMs
  for (const { line } of lane.spots) {
    if (line.resource.timed) nextMs = Math.min(nextMs, nowMs + (line.resource.msUntilRoom(nowMs, 0) || LOOK_MS))
  }
  return nextMs
}
