/** The load generator: always on Node, so that it is the same for every server. */

import { answerQuestions } from './answer.ts'
import { Pool } from './connection.ts'
import { runClosed, runOpen } from './loops.ts'
import { Pacer } from './pacer.ts'
import type { GeneratorProtocol } from './protocol.ts'
import { machineCpuMs } from './tally.ts'

const pools = new Map<number, Pool>()
const pacer = new Pacer()

function poolFor(port: number): Pool {
  const pool = pools.get(port) ?? new Pool(port)
  pools.set(port, pool)
  return pool
}

answerQuestions<GeneratorProtocol>(
  {},
  {
    machine: () => ({ cpuMs: machineCpuMs() }),
    async connect({ port, connections }) {
      await poolFor(port).connect(connections)
      return null
    },
    disconnect({ port }) {
      poolFor(port).close()
      pools.delete(port)
      return null
    },
    closed: (loop) => runClosed(loop, poolFor(loop.to.port)),
    open: (loop) => runOpen(loop, poolFor(loop.to.port), pacer),
  },
)
