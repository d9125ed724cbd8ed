import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { get, once, post } from '../client.ts'
import { buildServers, Child, freePort, isInstalled, RUNTIMES, type Runtime, startChild } from './child.ts'
import { TOKEN } from './fleet.ts'
import { Load, summarize } from './load.ts'
import { nginxConfig } from './nginx/config.ts'

const IS_FULL = process.env.SLUICE_DRILL_FULL === '1'
const RESTARTS = IS_FULL ? 21 : 2
const LEAST_REQUESTS = IS_FULL ? 50_000 : 500
const LANES = 64
const AUTHORIZED = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' }
const PAUSE_MS = IS_FULL ? 0 : 100
/** As shipped, and longer than a round of `readiness.sh`; a short run waits for that instead, however busy the machine. */
const ANNOUNCE_MS = IS_FULL ? 3000 : 300
const LIFE_MS = IS_FULL ? 1_200_000 : 180_000
const runtimes: readonly Runtime[] = (IS_FULL ? RUNTIMES : RUNTIMES.slice(0, 1)).filter(isInstalled)

/** The command ends with our end of its standard input, however we end. */
const GUARD = '"$@" & child=$!; cat >/dev/null; kill $child; wait $child'

let nginx: string | undefined
beforeAll(() => {
  nginx = findNginx() ?? (isOurMachine() ? installNginx() : undefined)
  return buildServers('nginx')
}, 180_000)

const children: Child[] = []
let poller: Child | undefined
const dirs: string[] = []
afterEach(async () => {
  poller?.kill('SIGTERM')
  await Promise.all(children.splice(0).map((child) => child.end()))
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true, force: true })
}, 20_000)

describe.each(runtimes)('%s instances behind nginx', (runtime) => {
  it(
    `DRN-4 DRN-5 ${RESTARTS} restarts under ${LANES} lanes lose no request: readiness alone is enough`,
    async ({ skip }) => {
      if (nginx === undefined) return skip('nginx is not installed, and this is no machine to install it on')
      const dir = mkdtempSync(join(tmpdir(), 'sluice-nginx-'))
      dirs.push(dir)
      chmodSync(dir, 0o755) // its workers run as another user
      mkdirSync(join(dir, 'ready'))
      const start = async (name: string, port: number): Promise<Child> => {
        const drill = { id: name, port, gateways: [], token: TOKEN, announceMs: ANNOUNCE_MS }
        const child = await startChild(runtime, 'instance', drill, LIFE_MS)
        children.push(child)
        return child
      }
      const upstreams = await Promise.all(['a', 'b', 'c'].map(async (name) => ({ name, port: await freePort() })))
      const instances = await Promise.all(upstreams.map(({ name, port }) => start(name, port)))
      const port = await freePort()
      writeFileSync(join(dir, 'nginx.conf'), nginxConfig({ dir, port, upstreams }))
      const balancer = new Child(
        'nginx',
        ['sh', '-c', GUARD, 'sh', nginx, '-p', dir, '-c', join(dir, 'nginx.conf')],
        {},
        LIFE_MS,
      )
      const script = fileURLToPath(new URL('nginx/readiness.sh', import.meta.url))
      const pairs = upstreams.map((each) => `${each.name}=http://127.0.0.1:${each.port}`)
      poller = new Child('readiness.sh', ['sh', script, join(dir, 'ready'), ...pairs], {}, LIFE_MS)
      children.push(balancer, poller)

      const ready = (name: string): boolean => existsSync(join(dir, 'ready', name))
      await until(() => upstreams.every(({ name }) => ready(name)), balancer)
      await until(async () => (await once(port, get('/quick/first')))?.status === 200, balancer)

      const load = new Load(port, LANES, PAUSE_MS)
      for (let restart = 0; restart < RESTARTS; restart += 1) {
        const at = restart % upstreams.length
        const { name, port: ownPort } = upstreams[at] ?? { name: '', port: 0 }
        if (!IS_FULL) {
          // As a deployment does that drains, looks, and only then stops: the announcement is long, and the signal ends it.
          const drained = await once(ownPort, post('/admission/drain', '{ "announceMs": 60000 }', AUTHORIZED))
          expect(drained?.status).toBe(200)
          await until(() => !ready(name), balancer)
        }
        instances[at]?.kill('SIGTERM')
        expect(await instances[at]?.exited).toBe(0)
        expect(ready(name)).toBe(false)
        instances[at] = await start(name, ownPort)
        await until(() => ready(name), balancer)
      }
      while (load.answered < LEAST_REQUESTS && load.lost.length === 0) await sleep(20)
      const { answered, lost, closed } = await load.stop()
      console.log(
        `${runtime} behind nginx: ${JSON.stringify({ restarts: RESTARTS, answered, lost: lost.length, closed })}`,
      )
      expect(summarize(lost)).toEqual({})
      expect(closed).toBe(0)
      await balancer.end()
      expect(balancer.stderr).not.toMatch(/\[(error|crit|alert|emerg)\]/)
    },
    LIFE_MS,
  )
})

async function until(isSo: () => boolean | Promise<boolean>, balancer: Child): Promise<void> {
  const endMs = performance.now() + 20_000
  while (!(await isSo())) {
    if (performance.now() > endMs || balancer.hasExited) throw new Error(`Not within 20 s: ${balancer.stderr}`)
    await sleep(20)
  }
}

function findNginx(): string | undefined {
  return ['/usr/sbin/nginx', '/usr/local/sbin/nginx', '/usr/bin/nginx'].find(existsSync)
}

/** Where installing a package surprises nobody: a run of CI, and there only with the right to. */
function isOurMachine(): boolean {
  return process.env.CI !== undefined && process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')
}

function installNginx(): string | undefined {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  spawnSync('sh', ['-c', 'apt-get update -q && apt-get install -qy --no-install-recommends nginx'], {
    env,
    timeout: 120_000,
  })
  return findNginx()
}
