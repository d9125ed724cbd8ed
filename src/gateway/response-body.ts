import type { Clock } from '../clock.ts'

/** One open body: whether its reader has asked for more, and for how long it has not. */
interface OpenBody {
  isAsked: boolean
  ticks: number // of the watch since its reader last asked
  readonly stall: () => void
}

/**
 * The response bodies under way to clients, so that one which nobody reads is ended at a bounded time: an outer
 * middleware that drops a body (304, error page) neither reads nor cancels it.
 *
 * The stall clock runs only while a body waits for its reader, never while a reader waits for its source (an idle
 * event stream is no stall). One timer for all bodies, and none while none is open; no clock reading per chunk.
 */
export class ResponseBodies {
  readonly #clock: Clock
  readonly #stallTimeoutMs: number
  readonly #open: Set<OpenBody>
  #cancelTimer: (() => void) | null

  /** A body is ended when its reader was away for `stallTimeoutMs`, at the latest half as long again. */
  constructor(clock: Clock, stallTimeoutMs: number) {
    this.#clock = clock
    this.#stallTimeoutMs = stallTimeoutMs
    this.#open = new Set()
    this.#cancelTimer = null
  }

  /** The same bytes with the same backpressure; `onEnd` runs once: at the end, on an error, a cancel or a stall. */
  track(source: ReadableStream<Uint8Array>, onEnd: () => void): ReadableStream<Uint8Array> {
    const reader = source.getReader()
    let isOver = false
    const end = (): boolean => {
      if (isOver) return false
      isOver = true
      this.#remove(body)
      onEnd()
      return true
    }
    let fail = (_error: Error): void => {}
    const body: OpenBody = {
      isAsked: false,
      ticks: 0,
      stall: () => {
        if (!end()) return
        const error = new Error(`Nothing was taken from the response body for ${this.#stallTimeoutMs} ms`)
        reader.cancel(error).catch(() => {})
        fail(error)
      },
    }
    const tracked = new ReadableStream<Uint8Array>(
      {
        start(controller) {
          fail = (error) => controller.error(error)
        },
        async pull(controller) {
          body.isAsked = true
          try {
            const { done, value } = await reader.read()
            if (done) {
              end()
              controller.close()
            } else {
              controller.enqueue(value)
            }
          } catch (error) {
            // The source failed, or the reader left while the source was asked; the latter ends in nothing.
            end()
            controller.error(error)
          }
          body.isAsked = false
          body.ticks = 0
        },
        cancel(reason) {
          end()
          return reader.cancel(reason)
        },
      },
      { highWaterMark: 0 },
    )
    this.#open.add(body)
    this.#arm()
    return tracked
  }

  #remove(body: OpenBody): void {
    this.#open.delete(body)
    if (this.#open.size > 0) return
    this.#cancelTimer?.()
    this.#cancelTimer = null
  }

  #arm(): void {
    if (this.#cancelTimer !== null || this.#open.size === 0) return
    this.#cancelTimer = this.#clock.callAt(this.#clock.nowMs() + Math.ceil(this.#stallTimeoutMs / 2), () => {
      this.#cancelTimer = null
      for (const body of [...this.#open]) {
        if (body.isAsked) continue
        body.ticks += 1
        // The first tick may come just after the reader left, so the third is the first that is late enough.
        if (body.ticks === 3) body.stall()
      }
      this.#arm()
    })
  }
}
