import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { argumentsFor, runtime } from '../host.ts'
import type {
  Address,
  AppCounts,
  ClosedLoop,
  GeneratorProtocol,
  OpenLoop,
  Outcome,
  ServerGreeting,
  ServerProtocol,
} from './protocol.ts'
import { TOLERABLE } from './quiet.ts'
import { Remote } from './remote.ts'

/** What came of one window, with what the server did for it. */
export interface Window extends Outcome {
  readonly serverCpuMs: number
  readonly mostRunning: number | null
  /** What other programs took of the machine meanwhile, in parts of one core. */
  readonly disturbance: number
}

/** Requests that were let in and answered. */
export function perSecond({ admitted, elapsedMs }: Window): number {
  return (admitted / elapsedMs) * 1000
}

const SAMPLE_MS = 200
const MAX_WAIT_MS = 60_000

/** A server and a generator, each a process of its own. */
export class Rig {
  readonly #server: Remote<ServerProtocol>
  readonly #generator: Remote<GeneratorProtocol>
  readonly #apps: ServerGreeting['apps']
  #waitedMs: number

  private constructor(
    server: Remote<ServerProtocol>,
    generator: Remote<GeneratorProtocol>,
    apps: ServerGreeting['apps'],
  ) {
    this.#server = server
    this.#generator = generator
    this.#apps = apps
    this.#waitedMs = 0
  }

  /** Starts both, and ends them whatever happens. */
  static async during<T>(what: string, size: number, measure: (rig: Rig) => Promise<T>): Promise<T> {
    const server = new Remote<ServerProtocol>('The server', process.execPath, [
      ...argumentsFor(pathOf('server.js')),
      what,
      String(size),
    ])
    const node = runtime === 'node' ? process.execPath : 'node'
    const generator = new Remote<GeneratorProtocol>('The generator', node, [pathOf('generator.js')])
    try {
      const [{ apps }] = await Promise.all([server.greeting<ServerGreeting>(), generator.greeting()])
      return await measure(new Rig(server, generator, apps))
    } finally {
      await Promise.all([server.end(), generator.end()])
    }
  }

  get apps(): readonly string[] {
    return Object.keys(this.#apps)
  }

  address(app: string): Address {
    const address = this.#apps[app]
    if (address === undefined) throw new Error(`No app ${app}`)
    return address
  }

  counts(app: string): Promise<AppCounts> {
    return this.#server.ask('counts', { app })
  }

  update(): Promise<ServerProtocol['update']['answered']> {
    return this.#server.ask('update', null)
  }

  watch(forMs: number): Promise<ServerProtocol['watch']['answered']> {
    return this.#server.ask('watch', { forMs })
  }

  /** Waits until other programs let the machine be; for a minute in all, and then no more. */
  async quiet(): Promise<void> {
    for (; this.#waitedMs < MAX_WAIT_MS; this.#waitedMs += SAMPLE_MS) {
      const before = await this.#generator.ask('machine', null)
      await new Promise((resolve) => setTimeout(resolve, SAMPLE_MS))
      const after = await this.#generator.ask('machine', null)
      if ((after.cpuMs - before.cpuMs) / SAMPLE_MS < TOLERABLE) return
    }
  }

  async connect(app: string, connections: number): Promise<void> {
    await this.#generator.ask('connect', { port: this.address(app).port, connections })
  }

  async disconnect(app: string): Promise<void> {
    await this.#generator.ask('disconnect', { port: this.address(app).port })
  }

  closed(app: string, loop: Omit<ClosedLoop, 'to'>): Promise<Window> {
    return this.#window(app, () => this.#generator.ask('closed', { to: this.address(app), ...loop }))
  }

  open(app: string, loop: Omit<OpenLoop, 'to'>): Promise<Window> {
    return this.#window(app, () => this.#generator.ask('open', { to: this.address(app), ...loop }))
  }

  /** Everything that is sent is answered before the window is over, so its processor time is all there is to it. */
  async #window(app: string, run: () => Promise<Outcome>): Promise<Window> {
    await this.counts(app) // forgets what was before
    const before = await this.#server.ask('cpu', null)
    const outcome = await run()
    const after = await this.#server.ask('cpu', null)
    if (outcome.wrong > 0) throw new Error(`${app}: ${outcome.wrong} wrong answers, the first: ${outcome.firstWrong}`)
    const { mostRunning } = await this.counts(app)
    const serverCpuMs = after.cpuMs - before.cpuMs
    const othersMs = Math.max(0, outcome.machineCpuMs - outcome.cpuMs - serverCpuMs)
    return { ...outcome, serverCpuMs, mostRunning, disturbance: othersMs / outcome.elapsedMs }
  }
}

function pathOf(program: string): string {
  return fileURLToPath(new URL(program, import.meta.url))
}
