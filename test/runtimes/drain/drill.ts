import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'
import type { ShutdownReport } from '../../../src/host/shutdown-report.ts'
import type { DrillOptions } from './drill-server.ts'

export const RUNTIMES = ['node', 'deno', 'bun'] as const
export type Runtime = (typeof RUNTIMES)[number]

const root = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url))

/** Node 20 gets a bundle, the others the sources. */
const COMMANDS: { readonly [R in Runtime]: readonly [string, ...string[]] } = {
  node: [process.execPath, root('build/drain/node.js')],
  deno: [root('node_modules/.bin/deno'), 'run', '-A', '--no-lock', root('test/runtimes/drain/servers/deno.ts')],
  bun: [root('node_modules/.bin/bun'), 'run', root('test/runtimes/drain/servers/bun.ts')],
}

export function isInstalled(runtime: Runtime): boolean {
  return existsSync(COMMANDS[runtime][0])
}

/** Makes the bundle that Node 20 runs. */
export async function buildDrillServer(): Promise<void> {
  await build({
    configFile: false,
    root: root(''),
    logLevel: 'error',
    build: {
      ssr: root('test/runtimes/drain/servers/node.ts'),
      outDir: root('build/drain'),
      target: 'es2022',
      minify: false,
      rolldownOptions: { output: { entryFileNames: 'node.js', codeSplitting: false } },
    },
  })
}

/** Longer than any drill takes. */
const LIFE_MS = 30_000

/** A server process under drill. */
export class Drill {
  readonly runtime: Runtime
  port: number
  /** What the process said of itself: `phase closing`, and the like. */
  readonly lines: string[]
  /** What it wrote to its standard error. */
  stderr: string
  readonly exited: Promise<number | null>
  readonly #child: ChildProcess
  #pid: number
  #changed: () => void

  private constructor(runtime: Runtime, options: DrillOptions) {
    const [command, ...args] = COMMANDS[runtime]
    this.runtime = runtime
    this.port = 0
    this.lines = []
    this.stderr = ''
    this.#pid = 0
    this.#changed = () => undefined
    this.#child = spawn(command, args, {
      cwd: root(''),
      env: { ...process.env, DRILL: JSON.stringify(options), NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const life = setTimeout(() => this.kill('SIGKILL'), LIFE_MS)
    this.exited = new Promise((resolve) => {
      this.#child.once('close', (code) => {
        clearTimeout(life)
        resolve(code)
        this.#changed()
      })
    })
    this.#child.stderr?.on('data', (data) => {
      this.stderr += data
    })
    if (this.#child.stdout !== null) {
      createInterface({ input: this.#child.stdout }).on('line', (line) => {
        this.lines.push(line)
        if (line.startsWith('pid ')) this.#pid = Number(line.slice(4))
        if (line.startsWith('port ')) this.port = Number(line.slice(5))
        this.#changed()
      })
    }
  }

  static async start(runtime: Runtime, options: Partial<DrillOptions> = {}): Promise<Drill> {
    const drill = new Drill(runtime, { announceMs: 0, finishMs: 5000, closeMs: 2000, ...options })
    await drill.line('port')
    return drill
  }

  /** Waits for a line that begins like this. */
  async line(begin: string): Promise<string> {
    let hasExited = false
    void this.exited.then(() => {
      hasExited = true
    })
    for (;;) {
      const line = this.lines.find((each) => each.startsWith(begin))
      if (line !== undefined) return line
      if (hasExited) throw new Error(`${this.runtime} ended without saying '${begin}': ${this.stderr}`)
      await new Promise<void>((resolve) => {
        this.#changed = resolve
      })
    }
  }

  /** To the server's own process: what is spawned may be a wrapper that passes no signal on. */
  kill(signal: NodeJS.Signals): void {
    try {
      process.kill(this.#pid === 0 ? (this.#child.pid ?? 0) : this.#pid, signal)
    } catch {
      // It has ended.
    }
  }

  async report(): Promise<ShutdownReport> {
    return JSON.parse((await this.line('report ')).slice('report '.length))
  }
}
