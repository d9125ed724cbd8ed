import type { Context } from 'hono'
import type { Lease } from '../admission/lease.ts'
import { Alarm } from '../alarm.ts'
import type { Timeline } from '../clock.ts'
import { DEFAULT_STALL_TIMEOUT_MS } from '../config/schema.ts'

/** A body's reader took nothing for so long that the body was ended: seen by the source and in the runtime's log. */
export class BodyStalledError extends Error {
  readonly code = 'ADMISSION_BODY_STALLED'
  readonly stallTimeoutMs: number
  constructor(stallTimeoutMs: number) {
    super(`Cannot go on sending the response body: nothing was taken from it for ${stallTimeoutMs} ms`)
    this.name = 'BodyStalledError'
    this.stallTimeoutMs = stallTimeoutMs
  }
}

/**
 * Holds a lease, or its place under `delivery`, until the response body has ended (REL-2, REL-3).
 *
 * False: there is no body to wait for (null, as with upgrades; already taken; or HEAD, which will drop it unread, so
 * its source is cancelled), the response is as it was, and the caller gives back what is held (REL-4). Routes
 * without these settings never come here: their body is not touched.
 *
 * `keep` is told of the time until the body has ended. On workerd the stall timer is gone with the request otherwise,
 * and with it what a body holds that another middleware has dropped unread (RUN-3).
 */
export function holdBody(
  c: Context,
  lease: Lease,
  timeline: Timeline,
  keep: (untilEnded: Promise<void>) => void,
): boolean {
  if (lease.holdUntil === 'handler') lease.releasePermits()
  const response = c.res
  if (response.body === null || response.body.locked) return false
  if (c.req.raw.method === 'HEAD') {
    response.body.cancel().catch(() => undefined)
    return false
  }
  // A stall is bounded on `holdUntil: "body"` routes without `delivery`, too (REL-6).
  const stallTimeoutMs = lease.delivery?.stallTimeoutMs ?? DEFAULT_STALL_TIMEOUT_MS
  let hasEnded: (() => void) | undefined
  keep(
    new Promise((resolve) => {
      hasEnded = resolve
    }),
  )
  const body = heldBody(response.body, declaredLength(response), stallTimeoutMs, timeline, () => {
    lease.release()
    hasEnded?.()
  })
  // Assigning over a response would copy its headers onto the new one, which has them already.
  c.res = undefined
  c.res = new Response(body, response)
  return true
}

/**
 * Passes a body on and calls `onEnd` once: just before the chunk that completes the declared length goes out, so that
 * no reader can know before; else when the source is done, before the stream is closed; on source error, cancel, or
 * when the reader asks for nothing for `stallTimeoutMs`, also if it never asks at all.
 *
 * Nothing is read ahead, so the stall clock stands still exactly while the reader waits for the source. One timer at a
 * time, set again only when it rings.
 */
export function heldBody(
  source: ReadableStream<Uint8Array>,
  length: number | undefined,
  stallTimeoutMs: number,
  timeline: Timeline,
  onEnd: () => void,
): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  let left = length ?? Number.POSITIVE_INFINITY // bytes until the declared length is complete
  let idleSinceMs: number | undefined // undefined: the reader is waiting for the source
  let ended = false
  let stall: (() => void) | undefined

  const alarm = new Alarm(timeline, (nowMs) => {
    if (idleSinceMs === undefined) return
    if (nowMs - idleSinceMs >= stallTimeoutMs) stall?.()
    else alarm.setBy(idleSinceMs + stallTimeoutMs)
  })
  const end = (): void => {
    if (ended) return
    ended = true
    onEnd()
  }
  const close = (): void => {
    alarm.clear()
    end()
  }
  /** The reader asks for nothing from now on. After the last declared byte nobody minds. */
  const idle = (): void => {
    if (ended) {
      alarm.clear()
      return
    }
    idleSinceMs = timeline.nowMs()
    alarm.setBy(idleSinceMs + stallTimeoutMs)
  }

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        stall = () => {
          const error = new BodyStalledError(stallTimeoutMs)
          close()
          controller.error(error)
          reader.cancel(error).catch(() => undefined)
        }
        if (left <= 0) end()
        idle()
      },
      async pull(controller) {
        idleSinceMs = undefined
        let result: ReadableStreamReadResult<Uint8Array>
        try {
          result = await reader.read()
        } catch (error) {
          close()
          controller.error(error)
          return
        }
        if (result.done) {
          close()
          closeQuietly(controller)
          return
        }
        left -= bytesOf(result.value)
        if (left <= 0) end()
        idle()
        enqueueQuietly(controller, result.value)
      },
      cancel(reason) {
        close()
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

/** A stream that was cancelled meanwhile takes nothing any more, and says so by throwing. */
function enqueueQuietly(controller: ReadableStreamDefaultController<Uint8Array>, chunk: Uint8Array): void {
  try {
    controller.enqueue(chunk)
  } catch {}
}

/** What is no bytes is for the runtime to refuse: it cancels the stream then. */
function bytesOf(chunk: unknown): number {
  return chunk instanceof Uint8Array ? chunk.byteLength : 0
}

function closeQuietly(controller: ReadableStreamDefaultController<Uint8Array>): void {
  try {
    controller.close()
  } catch {}
}

function declaredLength({ headers }: Response): number | undefined {
  const declared = headers.get('content-length')
  if (declared === null || !/^\d+$/.test(declared)) return undefined
  const length = Number(declared)
  return Number.isSafeInteger(length) ? length : undefined
}
