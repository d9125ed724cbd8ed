import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

export const RUNTIMES = ['node', 'deno', 'bun', 'workerd'] as const
export type Runtime = (typeof RUNTIMES)[number]

const root = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const bin = (name: string): string => root(`node_modules/.bin/${name}`)

/** What each runtime is started with; Node 20 and workerd get a bundle, the others the sources. */
const COMMANDS: { readonly [R in Runtime]: readonly [string, ...string[]] } = {
  node: [process.execPath, root('build/runtimes/node.js')],
  deno: [bin('deno'), 'run', '-A', '--no-lock', root('test/runtimes/servers/deno.ts')],
  bun: [bin('bun'), 'run', root('test/runtimes/servers/bun.ts')],
  workerd: [bin('workerd'), 'serve', '--control-fd=1', root('test/runtimes/servers/workerd.capnp')],
}

export function isInstalled(runtime: Runtime): boolean {
  return existsSync(COMMANDS[runtime][0])
}

/** A running server. */
export interface Server {
  readonly runtime: Runtime
  readonly port: number
  /** Where requests have a signal that fires; on workerd another worker than that of `port`. */
  readonly signalPort: number
  /** Has the process ended by itself? */
  readonly exited: () => boolean
  /** What the process has written to its standard error. */
  readonly log: () => string
  /** Resident memory of the process now. Bytes. */
  residentBytes(): number
  /** Processor time of the process so far. Milliseconds. */
  cpuMs(): number
  stop(): Promise<void>
}

/** The command as a child of a shell that kills it when our end of the pipe is closed, however we end. */
const GUARD = `exec 3<&0
"$@" 3<&- </dev/null & child=$!
echo "pid $child"
(cat <&3 >/dev/null; kill -9 $child 2>/dev/null) & wait $child
echo "exit $?"`

const START_TIMEOUT_MS = 30_000

/** Starts a server on a free loopback port. */
export async function startServer(runtime: Runtime): Promise<Server> {
  const guard = spawn('sh', ['-c', GUARD, 'sh', ...COMMANDS[runtime]], {
    stdio: ['pipe', 'pipe', 'pipe'],
    cwd: root(''),
  })
  const ports = new Map<string, number>()
  const errors: string[] = []
  let [pid, hasExited] = [0, false]
  guard.stderr.on('data', (data) => {
    if (errors.length < 1000) errors.push(`${data}`)
  })
  const ended = new Promise<void>((resolve) => guard.once('exit', () => resolve()))
  const needed = runtime === 'workerd' ? 2 : 1
  await new Promise<void>((resolve, reject) => {
    const fail = (why: string): void => reject(new Error(`${runtime} ${why}: ${errors.join('')}`))
    const timer = setTimeout(() => fail('did not start in time'), START_TIMEOUT_MS)
    createInterface({ input: guard.stdout }).on('line', (line) => {
      const listening = /^port (\d+)$/.exec(line)
      const socket = /"socket":"(\w+)","port":(\d+)/.exec(line)
      if (line.startsWith('pid ')) pid = Number(line.slice(4))
      else if (line.startsWith('exit ')) {
        hasExited = true
        fail(`ended with code ${line.slice(5)}`)
      } else if (listening !== null) ports.set('http', Number(listening[1]))
      else if (socket !== null) ports.set(socket[1] ?? '', Number(socket[2]))
      if (ports.size < needed) return
      clearTimeout(timer)
      resolve()
    })
  })
  const port = ports.get('http') ?? 0
  return {
    runtime,
    port,
    signalPort: ports.get('signals') ?? port,
    exited: () => hasExited,
    log: () => errors.join(''),
    residentBytes: () => {
      const kilobytes = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
      return Number(kilobytes?.[1]) * 1024
    },
    cpuMs: () => {
      // Behind the name in brackets: state is field 3, user and system time are fields 14 and 15, in hundredths.
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
      return (Number(fields[11]) + Number(fields[12])) * 10
    },
    stop: async () => {
      guard.stdin.end()
      await ended
    },
  }
}

/** Makes the bundles that Node 20 and workerd run. */
export async function buildServers(): Promise<void> {
  for (const runtime of ['node', 'workerd'] as const) {
    await build({
      configFile: false,
      root: root(''),
      logLevel: 'error',
      ssr: runtime === 'node' ? {} : { noExternal: true, target: 'webworker' },
      build: {
        ssr: root(`test/runtimes/servers/${runtime}.ts`),
        outDir: root('build/runtimes'),
        emptyOutDir: false,
        target: 'es2022',
        minify: false,
        rolldownOptions: { output: { entryFileNames: `${runtime}.js`, codeSplitting: false } },
      },
    })
  }
}
