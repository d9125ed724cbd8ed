/**
 * The server under load, on the runtime under test: `server.js <what> [<size>]`.
 *
 * All that is compared is in one process, each app on a port of its own. So all share one heap, one event loop and one
 * state of the compilers, and what happens to the process happens to all; a process for each app would differ by more
 * than the apps do, because it is compiled and laid out anew. What is shared is the code of Hono and of the runtime,
 * which sees the shapes of all apps; that costs all of them alike.
 */

import process from 'node:process'
import { longestBlockMs } from '../longest-block.ts'
import { answerQuestions } from './answer.ts'
import { SERVED } from './apps.ts'
import { listen } from './listen.ts'
import type { Address, ServerGreeting, ServerProtocol } from './protocol.ts'
import { cpuMs } from './tally.ts'

const [, , what = '', size = '0'] = process.argv
const serve = SERVED[what]
if (serve === undefined) throw new Error(`Cannot serve ${what}`)
const { apps, update } = serve(Number(size))

const addresses: { [name: string]: Address } = {}
for (const [name, { app, path, body }] of Object.entries(apps))
  addresses[name] = { port: await listen(app), path, body }

answerQuestions<ServerProtocol>({ apps: addresses } satisfies ServerGreeting, {
  cpu: () => ({ cpuMs: cpuMs() }),
  counts({ app }) {
    const counted = apps[app]
    if (counted === undefined) throw new Error(`No app ${app}`)
    return counted.counts()
  },
  update() {
    if (update === undefined) throw new Error(`Cannot update ${what}`)
    return update()
  },
  async watch({ forMs }) {
    const blockMs = await longestBlockMs(() => new Promise((resolve) => setTimeout(resolve, forMs)))
    return { blockMs }
  },
})
