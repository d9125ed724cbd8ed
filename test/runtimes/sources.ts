import type { Probe } from './probe.ts'

/** What a streamed body gives, as it is asked for. */
export interface SourceOptions {
  /** Chunks, and the bytes of each. */
  readonly count: number
  readonly bytes: number
  /** What each chunk takes. */
  readonly everyMs?: number
  /** How long after the last chunk the source says that it is done. */
  readonly endAfterMs?: number
  /** The chunk in whose place the source fails. */
  readonly breaksAt?: number
}

export function source(probe: Probe, options: SourceOptions): ReadableStream<Uint8Array> {
  const { count, bytes, everyMs, endAfterMs, breaksAt } = options
  const { counts } = probe
  counts.sources += 1
  let [given, isOver] = [0, false]
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const delayMs = given < count ? everyMs : endAfterMs
        if (delayMs !== undefined) await sleep(delayMs)
        if (isOver) return
        if (given === breaksAt) throw new Error('the source is broken')
        if (given === count) {
          isOver = true
          counts.ended += 1
          controller.close()
          return
        }
        given += 1
        counts.takenBytes += bytes
        controller.enqueue(new Uint8Array(bytes).fill(46))
      },
      cancel() {
        isOver = true
        counts.cancelled += 1
      },
    },
    { highWaterMark: 0 },
  )
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
