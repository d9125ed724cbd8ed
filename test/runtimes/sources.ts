import type { Probe } from './probe.ts'

/** A source of `count` chunks of `bytes` each, given as they are asked for. */
export function chunks(probe: Probe, count: number, bytes: number): ReadableStream<Uint8Array> {
  const { counts } = probe
  counts.sources += 1
  let left = count
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (left === 0) {
          counts.ended += 1
          controller.close()
          return
        }
        left -= 1
        counts.takenBytes += bytes
        controller.enqueue(new Uint8Array(bytes).fill(46))
      },
      cancel() {
        counts.cancelled += 1
      },
    },
    { highWaterMark: 0 },
  )
}

/** A source that gives a chunk every `everyMs` until `count` are out; `count` may be infinite. */
export function ticks(probe: Probe, count: number, everyMs: number, bytes = 16): ReadableStream<Uint8Array> {
  const { counts } = probe
  counts.sources += 1
  let left = count
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (left === 0) {
          counts.ended += 1
          controller.close()
          return
        }
        left -= 1
        await sleep(everyMs)
        counts.takenBytes += bytes
        try {
          controller.enqueue(new Uint8Array(bytes).fill(46))
        } catch {} // cancelled meanwhile
      },
      cancel() {
        counts.cancelled += 1
      },
    },
    { highWaterMark: 0 },
  )
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
