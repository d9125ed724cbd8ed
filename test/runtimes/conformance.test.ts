import { afterAll, beforeAll, describe, it } from 'vitest'
import { acknowledge } from './cases/acknowledge.ts'
import { delivery } from './cases/delivery.ts'
import { disconnects } from './cases/disconnects.ts'
import { lanes } from './cases/lanes.ts'
import { liveUpdates } from './cases/live-updates.ts'
import { neighbours } from './cases/neighbours.ts'
import { queue } from './cases/queue.ts'
import { unreadBodies } from './cases/unread-bodies.ts'
import { IS_FULL, Lab } from './lab.ts'
import { buildServers, RUNTIMES, requireRuntime, type ServerProcess, startServer } from './servers.ts'
import { Table } from './table.ts'

const CASES = [
  ...lanes,
  ...delivery,
  ...disconnects,
  ...unreadBodies,
  ...queue,
  ...acknowledge,
  ...neighbours,
  ...liveUpdates,
]
const CASE_TIMEOUT_MS = IS_FULL ? 900_000 : 60_000

const table = new Table()

beforeAll(buildServers, CASE_TIMEOUT_MS)
afterAll(() => console.log(`\n${table}\n`))

describe.each(RUNTIMES)('%s', (runtime) => {
  let server: ServerProcess | undefined

  /** The server of the case before, unless that has left something behind. */
  const quietLab = async (): Promise<Lab> => {
    if (server !== undefined) {
      const lab = new Lab(runtime, server)
      try {
        await lab.quiet(2000)
        return lab
      } catch {
        await server.stop()
      }
    }
    server = await startServer(runtime)
    return new Lab(runtime, server)
  }
  afterAll(() => server?.stop())

  for (const { name, label, on, run } of CASES) {
    it(name, { timeout: CASE_TIMEOUT_MS }, async (context) => {
      if (on?.includes(runtime) === false) {
        table.set(label, runtime, '-')
        context.skip(`not on ${runtime}`)
      }
      table.set(label, runtime, 'absent')
      requireRuntime(context, runtime)
      table.set(label, runtime, 'FAILED')
      const measured = await run(await quietLab())
      table.set(label, runtime, measured ?? 'ok')
    })
  }
})
