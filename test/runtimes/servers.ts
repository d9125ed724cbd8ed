import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'
import type { TestContext } from 'vitest'

export const RUNTIMES = ['node', 'deno', 'bun', 'workerd'] as const
export type Runtime = (typeof RUNTIMES)[number]

export const root = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
export const bin = (name: string): string => root(`node_modules/.bin/${name}`)

/** What each runtime is started with; Node 20 and workerd get a bundle, the others the sources. */
const COMMANDS: { readonly [R in Runtime]: readonly [string, ...string[]] } = {
  node: [process.execPath, root('build/runtimes/node.js')],
  deno: [bin('deno'), 'run', '-A', '--no-lock', root('test/runtimes/servers/deno.ts')],
  bun: [bin('bun'), 'run', root('test/runtimes/servers/bun.ts')],
  workerd: [bin('workerd'), 'serve', '--control-fd=1', root('test/runtimes/servers/workerd.capnp')],
}

/**
 * Skips a test whose runtime is not installed, and says so; on a machine that decides what lands (`CI=true`) it fails.
 */
export function requireRuntime(context: TestContext, runtime: Runtime): void {
  if (existsSync(COMMANDS[runtime][0])) return
  if (process.env.CI === 'true') throw new Error(`${runtime} is not installed`)
  context.skip(`${runtime} is not installed`)
}

/** The command as a child of a shell that kills it when our end of the pipe is closed, however we end. */
const GUARD = `exec 3<&0
"$@" 3<&- </dev/null & child=$!
echo "pid $child"
(cat <&3 >/dev/null; kill -9 $child 2>/dev/null) & wait $child
echo "exit $?"`

const START_TIMEOUT_MS = 30_000

/** A server process and the ports it listens on. */
export class ServerProcess {
  /** By name of the socket; `http` for whoever has only one. */
  readonly ports: ReadonlyMap<string, number>
  readonly pid: number
  /** Resolves with the exit code when the process has ended by itself or by a signal. */
  readonly exited: Promise<number>
  readonly #end: () => Promise<void>

  constructor(ports: ReadonlyMap<string, number>, pid: number, exited: Promise<number>, end: () => Promise<void>) {
    this.ports = ports
    this.pid = pid
    this.exited = exited
    this.#end = end
  }

  port(name = 'http'): number {
    const port = this.ports.get(name)
    if (port === undefined) throw new Error(`no socket ${name}`)
    return port
  }

  /** Resident memory now. Bytes. */
  residentBytes(): number {
    const kilobytes = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${this.pid}/status`, 'utf8'))
    return Number(kilobytes?.[1]) * 1024
  }

  /** Processor time so far. Milliseconds. */
  cpuMs(): number {
    // Behind the name in brackets: state is field 3, user and system time are fields 14 and 15, in hundredths.
    const fields = readFileSync(`/proc/${this.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) * 10
  }

  /** Ends it at once. */
  stop(): Promise<void> {
    return this.#end()
  }
}

/** Starts a command, and waits until it has said which ports its sockets have, so many of them. */
export async function launch(
  command: readonly string[],
  sockets = 1,
  env: { readonly [name: string]: string } = {},
): Promise<ServerProcess> {
  const guard = spawn('sh', ['-c', GUARD, 'sh', ...command], {
    stdio: ['pipe', 'pipe', 'pipe'],
    cwd: root(''),
    env: { ...process.env, ...env },
  })
  const ports = new Map<string, number>()
  const errors: string[] = []
  guard.stderr.on('data', (data) => {
    if (errors.length < 100) errors.push(`${data}`)
  })
  let pid = 0
  let onExit: ((code: number) => void) | undefined
  const exited = new Promise<number>((resolve) => {
    onExit = resolve
  })
  const guardEnded = new Promise<void>((resolve) => guard.once('exit', () => resolve()))
  const end = async (): Promise<void> => {
    guard.stdin.end()
    await guardEnded
  }
  try {
    await new Promise<void>((resolve, reject) => {
      const fail = (why: string): void => reject(new Error(`${command.join(' ')} ${why}: ${errors.join('')}`))
      const timer = setTimeout(() => fail('did not start in time'), START_TIMEOUT_MS)
      createInterface({ input: guard.stdout }).on('line', (line) => {
        const listening = /^(?:port |Listening on http:.*:)(\d+)$/.exec(line)
        const socket = /"socket":"(\w+)","port":(\d+)/.exec(line)
        if (line.startsWith('pid ')) pid = Number(line.slice(4))
        else if (line.startsWith('exit ')) {
          onExit?.(Number(line.slice(5)))
          fail(`ended with ${line}`)
        } else if (listening !== null) ports.set('http', Number(listening[1]))
        else if (socket !== null) ports.set(socket[1] ?? '', Number(socket[2]))
        if (ports.size < sockets) return
        clearTimeout(timer)
        resolve()
      })
    })
  } catch (error) {
    await end()
    throw error
  }
  return new ServerProcess(ports, pid, exited, end)
}

/** Starts the server of the suite on free loopback ports. */
export async function startServer(runtime: Runtime): Promise<ServerProcess> {
  // A build of the package meanwhile has cleaned the bundles away.
  if ((runtime === 'node' || runtime === 'workerd') && !existsSync(root(`build/runtimes/${runtime}.js`))) {
    await bundle(runtime, `test/runtimes/servers/${runtime}.ts`)
  }
  return launch(COMMANDS[runtime], runtime === 'workerd' ? 3 : 1)
}

/** Bundles one entry for Node 20 or workerd, the package by its name being the sources. */
export async function bundle(runtime: 'node' | 'workerd', entry: string, outDir = 'build/runtimes'): Promise<void> {
  await build({
    configFile: false,
    root: root(''),
    logLevel: 'error',
    resolve: {
      alias: [
        { find: /^@sluice\/admission$/, replacement: root('mod.ts') },
        { find: /^@sluice\/admission\/node$/, replacement: root('src/host/node.ts') },
      ],
    },
    ssr: runtime === 'node' ? {} : { noExternal: true, target: 'webworker' },
    build: {
      ssr: root(entry),
      outDir: root(outDir),
      emptyOutDir: false,
      target: 'es2022',
      minify: false,
      rolldownOptions: {
        external: ['cloudflare:workers'],
        output: { entryFileNames: `${basename(entry, '.ts')}.js`, codeSplitting: false },
      },
    },
  })
}

/** Makes the bundles of the suite's own servers. */
export async function buildServers(): Promise<void> {
  await bundle('node', 'test/runtimes/servers/node.ts')
  await bundle('workerd', 'test/runtimes/servers/workerd.ts')
}
