import type { Clock } from '../src/clock.ts'

/** What a clock counts for the exact numbers. */
export interface CountingClock extends Clock {
  reads: number
  timersStarted: number
}

/** Time that moves only when it is set; timers are counted, and never ring. Costs next to nothing, unlike a host's. */
export class StillClock implements CountingClock {
  reads: number
  timersStarted: number
  #nowMs: number

  constructor() {
    this.reads = 0
    this.timersStarted = 0
    this.#nowMs = 0
  }

  nowMs(): number {
    this.reads += 1
    return this.#nowMs
  }

  set(nowMs: number): void {
    this.#nowMs = nowMs
  }

  callAt(): () => void {
    this.timersStarted += 1
    return cancelled
  }
}

function cancelled(): void {}
