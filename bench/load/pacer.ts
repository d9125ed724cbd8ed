import process from 'node:process'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'

/** What the thread is told: when the first of how many is due, and how far they are apart. */
interface Schedule {
  readonly startNs: number
  readonly intervalMs: number
  readonly count: number
}

type OnDue = (index: number, dueMs: number) => void

/**
 * Says when something is due, to a twentieth of a millisecond: a thread sleeps for it. A timer is good to one or two
 * milliseconds, which is what a light request takes, and a loop that looks at the clock takes the processor from the
 * server.
 */
export class Pacer {
  readonly #thread: Worker
  #startMs: number
  #intervalMs: number
  #onDue: OnDue

  constructor() {
    this.#startMs = 0
    this.#intervalMs = 0
    this.#onDue = () => {}
    this.#thread = new Worker(new URL(import.meta.url))
    this.#thread.on('message', (index: number) => this.#onDue(index, this.#startMs + index * this.#intervalMs))
  }

  /** One schedule at a time. */
  run(count: number, intervalMs: number, onDue: OnDue): void {
    this.#startMs = performance.now() + 1
    this.#intervalMs = intervalMs
    this.#onDue = onDue
    this.#thread.postMessage({ startNs: nowNs() + 1e6, intervalMs, count } satisfies Schedule)
  }
}

/** The one clock that threads have in common. */
function nowNs(): number {
  return Number(process.hrtime.bigint())
}

function keepSchedules(): void {
  const never = new Int32Array(new SharedArrayBuffer(4))
  parentPort?.on('message', ({ startNs, intervalMs, count }: Schedule) => {
    for (let index = 0; index < count; index += 1) {
      const dueNs = startNs + index * intervalMs * 1e6
      for (let leftNs = dueNs - nowNs(); leftNs > 0; leftNs = dueNs - nowNs()) Atomics.wait(never, 0, 0, leftNs / 1e6)
      parentPort?.postMessage(index)
    }
  })
}

if (!isMainThread) keepSchedules()
