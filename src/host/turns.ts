import type { Clock } from '../clock.ts'

/** One turn of the event loop to accept a connection, one to read from it. */
export const TURNS = 2

/**
 * Lets what has arrived be read. Timers come before reading in a turn of the event loop, so after a busy stretch whatever
 * a timer closes or refuses may include requests that were here long ago.
 */
export async function passTurns(clock: Clock): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) {
    await new Promise<void>((resolve) => clock.callAt(clock.nowMs(), resolve))
  }
}
