/**
 * Changes limits under load, and then checks the books: `npm run demo`. About 20 seconds, on the loopback device only.
 *
 * Starts the example application as a process of its own, keeps 64 clients busy with it, and publishes a shrink, a
 * grow and a stale update through the admin route meanwhile. Exits with 1 if anything does not add up.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Config, ConfigInput, Snapshot } from '@sluice/admission'
import { runLane, Tally } from './load.ts'
import { Screen } from './screen.ts'

const LANES = 64
const SECONDS = 18
const ADMIN_TOKEN = 'demo'
const CONTRACT = '/orders'
const METHOD = 'POST /orders'
const SCOPE = `method:${CONTRACT} ${METHOD}`

/** What the operator does, and in which second. */
const SHRINK = { second: 5, limit: 4 }
const GROW = { second: 10, limit: 48 }
const STALE = { second: 14, limit: 1 }

interface Configuration {
  readonly etag: string
  readonly generation: number
  readonly config: Config
}

/** The operator's side of the application. */
class Operator {
  readonly #url: string

  constructor(url: string) {
    this.#url = `${url}/admission`
  }

  async configuration(): Promise<Configuration> {
    const response = await this.#fetch('/config')
    const { generation, config }: Configuration = await response.json()
    return { etag: response.headers.get('etag') ?? '', generation, config }
  }

  async state(): Promise<Snapshot> {
    return (await this.#fetch('/state')).json()
  }

  /** Publishes one changed limit on top of what was read, if that is still current. Returns the status. */
  async putLimit({ etag, config }: Configuration, limit: number): Promise<number> {
    const response = await this.#fetch('/config', {
      method: 'PUT',
      headers: { 'Content-Type': 'application/json', 'If-Match': etag },
      body: JSON.stringify(withLimit(config, limit)),
    })
    await response.arrayBuffer()
    return response.status
  }

  #fetch(path: string, init: { method?: string; headers?: Record<string, string>; body?: string } = {}) {
    const headers = { ...init.headers, Authorization: `Bearer ${ADMIN_TOKEN}` }
    return fetch(`${this.#url}${path}`, { ...init, headers })
  }
}

function withLimit(config: Config, concurrency: number): ConfigInput {
  const contract = config.contracts?.[CONTRACT]
  const method = { ...contract?.methods?.[METHOD], concurrency }
  const methods = { ...contract?.methods, [METHOD]: method }
  return { ...config, contracts: { ...config.contracts, [CONTRACT]: { ...contract, methods } } }
}

/** Starts the application on a free port. Returns its process and address. */
async function startApp(): Promise<{ app: ChildProcess; url: string }> {
  const path = fileURLToPath(new URL('./app.js', import.meta.url))
  const app = spawn(process.execPath, [path], {
    env: { ...process.env, PORT: '0', HOST: '127.0.0.1', ADMIN_TOKEN },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (app.stdout === null) throw new Error('The application has no output')
  let url: string | undefined
  for await (const line of createInterface({ input: app.stdout })) {
    url = /^Listening on (\S+)/.exec(line)?.[1]
    if (url !== undefined) break
  }
  if (url === undefined) throw new Error('The application ended before it listened')
  app.stdout.resume() // what it says later must not fill the pipe
  return { app, url }
}

async function run(url: string): Promise<readonly Check[]> {
  const operator = new Operator(url)
  const screen = new Screen(`${LANES} clients send orders to ${url}; limits change while they do`, process.stdout)
  const first = await operator.configuration()

  let sent = 0
  const total = new Tally()
  let second = new Tally()
  const stop = new AbortController()
  const lanes = Array.from({ length: LANES }, () =>
    runLane(`${url}/orders`, stop.signal, {
      sent: () => {
        sent += 1
      },
      answered: (outcome) => {
        total.add(outcome)
        second.add(outcome)
      },
    }),
  )

  const statuses = new Map<string, number>()
  const put = async (name: string, from: Configuration, limit: number): Promise<void> => {
    const status = await operator.putLimit(from, limit)
    statuses.set(name, status)
    screen.note(`${name}: PUT limit ${limit}, prepared from generation ${from.generation} → ${status}`)
  }
  const startMs = performance.now()
  for (let now = 1; now <= SECONDS; now += 1) {
    await sleepUntil(startMs + now * 1000)
    const { active, queued, scopes } = await operator.state()
    const limit = scopes.find(({ scope }) => scope === SCOPE)?.limit ?? Number.NaN
    const { admitted, refused, p99Ms } = second
    second = new Tally()
    screen.row({ second: now, limit, active, queued: queued.calls, admitted, refused, p99Ms })
    if (now === SHRINK.second) await put('shrink', await operator.configuration(), SHRINK.limit)
    if (now === GROW.second) await put('grow', await operator.configuration(), GROW.limit)
    if (now === STALE.second) await put('stale', first, STALE.limit)
  }
  stop.abort()
  await Promise.all(lanes)

  const end = await operator.state()
  const last = await operator.configuration()
  const refusedByServer = Object.values(end.totals.refused).reduce((sum, count) => sum + count, 0)
  const peaks = [...total.peaks].map(([limit, peak]) => `${peak} of ${limit}`).join(', ')
  const reasons = [...total.reasons].map(([reason, count]) => `${count} ${reason}`).join(', ') || 'none'
  return [
    check('every request answered', total.lost === 0 && total.admitted + total.refused === sent, [
      `${sent} sent = ${total.admitted} admitted + ${total.refused} refused (${reasons}), ${total.lost} lost`,
      ...(total.firstLost === undefined ? [] : [total.firstLost]),
    ]),
    check('both sides count the same', end.totals.admitted === total.admitted && refusedByServer === total.refused, [
      `server: ${end.totals.admitted} admitted, ${refusedByServer} refused`,
    ]),
    check('no order ran over a limit', total.overLimit === 0 && total.peaks.size >= 3, [
      `most seen running by the handler: ${peaks}`,
    ]),
    check('shrink and grow published', statuses.get('shrink') === 200 && statuses.get('grow') === 200, [
      `generation ${first.generation} → ${last.generation}`,
    ]),
    check('stale update refused, nothing changed', statuses.get('stale') === 412 && last.generation === 3, [
      `status ${statuses.get('stale')}, limit still ${end.scopes.find(({ scope }) => scope === SCOPE)?.limit}`,
    ]),
    check('nothing left behind', end.active === 0 && end.queued.calls === 0 && end.generations.length === 1, [
      `${end.active} active, ${end.queued.calls} queued, ${end.generations.length} generation`,
    ]),
  ]
}

interface Check {
  readonly what: string
  readonly isRight: boolean
  readonly details: readonly string[]
}

function check(what: string, isRight: boolean, details: readonly string[]): Check {
  return { what, isRight, details }
}

function sleepUntil(atMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, atMs - performance.now())))
}

/** Asks the application to drain. Returns its exit code; kills it if it does not go. */
async function endApp(app: ChildProcess): Promise<Check> {
  if (app.exitCode === null) {
    const exited = once(app, 'exit')
    app.kill('SIGTERM')
    const timer = setTimeout(() => app.kill('SIGKILL'), 10_000)
    await exited
    clearTimeout(timer)
  }
  return check('application drained and ended', app.exitCode === 0, [`exit code ${app.exitCode}`])
}

const { app, url } = await startApp()
const checks: Check[] = []
try {
  checks.push(...(await run(url)))
} finally {
  checks.push(await endApp(app))
}
console.log('\nReconciliation')
for (const { what, isRight, details } of checks) {
  console.log(`  ${isRight ? 'ok  ' : 'FAIL'} ${what}: ${details.join('; ')}`)
}
if (!checks.every(({ isRight }) => isRight)) process.exitCode = 1
