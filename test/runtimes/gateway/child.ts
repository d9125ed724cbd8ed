import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

export const RUNTIMES = ['node', 'deno', 'bun'] as const
export type Runtime = (typeof RUNTIMES)[number]
export type Role = 'instance' | 'gateway'

const root = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url))
const bin = (name: string): string => root(`node_modules/.bin/${name}`)
/** Each test file has bundles of its own: files run at the same time. */
let bundles = ''

/** Node 20 gets a bundle, the others the sources. */
function commandOf(runtime: Runtime, role: Role): readonly [string, ...string[]] {
  const source = root(`test/runtimes/gateway/servers/${runtime}-${role}.ts`)
  switch (runtime) {
    case 'node':
      return [process.execPath, root(`${bundles}/node-${role}.js`)]
    case 'deno':
      return [bin('deno'), 'run', '-A', '--no-lock', source]
    case 'bun':
      return [bin('bun'), 'run', source]
  }
}

export function isInstalled(runtime: Runtime): boolean {
  return runtime === 'node' || existsSync(bin(runtime))
}

/** Makes the bundles that Node 20 runs. */
export async function buildServers(testFile: string): Promise<void> {
  bundles = `build/gateway-drill/${testFile}`
  for (const role of ['instance', 'gateway'] as const) {
    await build({
      configFile: false,
      root: root(''),
      logLevel: 'error',
      build: {
        ssr: root(`test/runtimes/gateway/servers/node-${role}.ts`),
        outDir: root(bundles),
        emptyOutDir: false,
        target: 'es2022',
        minify: false,
        rolldownOptions: { output: { entryFileNames: `node-${role}.js`, codeSplitting: false } },
      },
    })
  }
}

/** A port of the loopback address that nobody listens on now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

/** A process of a drill. It ends with ours, and after `lifeMs` at the latest. */
export class Child {
  /** What it said of itself: `port 4711`, `phase closing`, and the like. */
  readonly lines: string[]
  /** What it wrote to its standard error. */
  stderr: string
  /** Its exit code; null when a signal ended it. */
  readonly exited: Promise<number | null>
  readonly #name: string
  readonly #child: ChildProcess
  #hasExited: boolean
  readonly #waiting: Set<() => void>

  constructor(
    name: string,
    [command, ...args]: readonly [string, ...string[]],
    env: { readonly [name: string]: string },
    lifeMs: number,
  ) {
    this.lines = []
    this.stderr = ''
    this.#name = name
    this.#hasExited = false
    this.#waiting = new Set()
    this.#child = spawn(command, args, {
      cwd: root(''),
      env: { ...process.env, NO_COLOR: '1', ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    const life = setTimeout(() => this.end(), lifeMs)
    const tell = (): void => {
      for (const look of [...this.#waiting]) look()
    }
    this.exited = new Promise((resolve) => {
      this.#child.once('error', (error) => {
        this.stderr += `${error}`
      })
      this.#child.once('close', (code) => {
        clearTimeout(life)
        this.#hasExited = true
        resolve(code)
        tell()
      })
    })
    // It may be gone when we close this.
    this.#child.stdin?.on('error', () => undefined)
    this.#child.stderr?.on('data', (data) => {
      if (this.stderr.length < 100_000) this.stderr += data
    })
    if (this.#child.stdout !== null) {
      createInterface({ input: this.#child.stdout }).on('line', (line) => {
        this.lines.push(line)
        tell()
      })
    }
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  get hasExited(): boolean {
    return this.#hasExited
  }

  /** What follows `begin` in the first line that begins so; waits for it. */
  async line(begin: string): Promise<string> {
    for (;;) {
      const line = this.lines.find((each) => each.startsWith(begin))
      if (line !== undefined) return line.slice(begin.length).trim()
      if (this.#hasExited) throw new Error(`${this.#name} ended without saying '${begin}': ${this.stderr}`)
      await new Promise<void>((resolve) => {
        const look = (): void => {
          this.#waiting.delete(look)
          resolve()
        }
        this.#waiting.add(look)
      })
    }
  }

  kill(signal: NodeJS.Signals): void {
    if (!this.#hasExited) this.#child.kill(signal)
  }

  /** Closes its standard input, at which ours end at once; what does not is killed. Waits for that. */
  async end(): Promise<void> {
    this.#child.stdin?.end()
    const patience = setTimeout(() => this.kill('SIGKILL'), 2000)
    await this.exited
    clearTimeout(patience)
  }
}

/** Starts one of our servers; resolves when it listens. */
export async function startChild(runtime: Runtime, role: Role, drill: object, lifeMs: number): Promise<Child> {
  const child = new Child(`${role} on ${runtime}`, commandOf(runtime, role), { DRILL: JSON.stringify(drill) }, lifeMs)
  await child.line('port ')
  return child
}
