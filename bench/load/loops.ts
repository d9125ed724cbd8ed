import type { Connection, OnAnswer, Pool } from './connection.ts'
import type { Pacer } from './pacer.ts'
import type { Address, ClosedLoop, OpenLoop, Outcome } from './protocol.ts'
import { Tally } from './tally.ts'

const ANSWER_TIMEOUT_MS = 20_000 // after the last request: an overloaded server answers late, but it does

/** As many lanes as connections: each sends a request, waits for its answer, sends the next one. */
export function runClosed({ to, connections, forMs }: ClosedLoop, pool: Pool): Promise<Outcome> {
  const request = requestFor(to)
  const tally = new Tally(to.body, Number.POSITIVE_INFINITY)
  const endMs = performance.now() + forMs
  return new Promise((resolve) => {
    let running = connections
    const timer = setTimeout(() => {
      tally.unanswered(running)
      resolve(tally.outcome())
    }, forMs + ANSWER_TIMEOUT_MS)
    const lane = (connection: Connection): void => {
      let sentMs = performance.now()
      const onAnswer: OnAnswer = (answer) => {
        const nowMs = performance.now()
        tally.answered(answer, nowMs - sentMs)
        if (answer !== undefined && nowMs < endMs) {
          tally.sent()
          sentMs = nowMs
          connection.send(request, onAnswer)
          return
        }
        pool.give(connection)
        running -= 1
        if (running > 0) return
        clearTimeout(timer)
        resolve(tally.outcome())
      }
      tally.sent()
      connection.send(request, onAnswer)
    }
    for (let count = 0; count < connections; count += 1) {
      const connection = pool.take(connections)
      if (connection === undefined) throw new Error('More connections are under way than lanes')
      lane(connection)
    }
  })
}

/**
 * Requests on a fixed schedule. Times count from when a request was due, so a server that stands still is charged for
 * all who came meanwhile, and not only for those that could be sent.
 */
export function runOpen(loop: OpenLoop, pool: Pool, pacer: Pacer): Promise<Outcome> {
  const { to, requestsPerS, leadMs, forMs, maxConnections, goodWithinMs } = loop
  const request = requestFor(to)
  const tally = new Tally(to.body, goodWithinMs)
  const intervalMs = 1000 / requestsPerS
  const leading = Math.ceil(leadMs / intervalMs)
  const total = leading + Math.ceil(forMs / intervalMs)
  return new Promise((resolve) => {
    let due = 0
    let underWay = 0
    let timer: ReturnType<typeof setTimeout> | undefined
    const over = (): void => {
      clearTimeout(timer)
      resolve(tally.outcome())
    }
    pacer.run(total, intervalMs, (index, dueMs) => {
      due += 1
      if (due === total) {
        timer = setTimeout(() => {
          tally.unanswered(underWay)
          over()
        }, ANSWER_TIMEOUT_MS)
      }
      const isCounted = index >= leading
      const connection = pool.take(maxConnections)
      if (connection === undefined) {
        if (isCounted) tally.lost()
        if (due === total && underWay === 0) over()
        return
      }
      underWay += 1
      if (isCounted) tally.sentLate(performance.now() - dueMs)
      connection.send(request, (answer) => {
        if (isCounted || answer === undefined) tally.answered(answer, performance.now() - dueMs)
        pool.give(connection)
        underWay -= 1
        if (due === total && underWay === 0) over()
      })
    })
  })
}

function requestFor({ path }: Address): string {
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`
}
