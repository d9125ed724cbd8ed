import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Hono } from 'hono'
import { describe, expect, it, vi } from 'vitest'
import { configJsonSchema } from '../src/config/json-schema.ts'
import { refusalResponse } from '../src/hono/refusal-response.ts'
import { refusal } from '../src/refusal.ts'
import { noTotals } from '../src/totals.ts'
import { filesBelow, ROOT } from './support/source.ts'

const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
/** Programs that must compile; those marked `run` must run, too. */
const programs = [...readme.matchAll(/^```ts (run|check)\n(.*?)^```$/gms)].map(([, mark, text = '']) => ({
  mark,
  text,
}))
/** Rows of all tables, with the digits of a number together. */
const rows = readme
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .map((line) => line.replace(/(?<=\d) (?=\d{3})/g, ''))

/** Writes the programs where the package's own name and its dependencies are found. */
function writePrograms(): readonly string[] {
  const folder = join(ROOT, 'build/readme')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const options = { noUnusedLocals: false, isolatedDeclarations: false }
  const project = { extends: '../../tsconfig.json', compilerOptions: options, include: ['*.ts'] }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(project))
  return programs.map(({ text }, index) => {
    const path = join(folder, `program-${index + 1}.ts`)
    writeFileSync(path, `${text}\nexport {}\n`)
    return path
  })
}

describe('README', () => {
  it('has programs that compile and run, the first of them a server', async () => {
    const paths = writePrograms()
    expect(paths.length).toBeGreaterThanOrEqual(4)
    const tsc = join(ROOT, 'node_modules/.bin/tsc')
    const { stdout } = spawnSync(tsc, ['-p', 'build/readme'], { cwd: ROOT, encoding: 'utf8' })
    expect(stdout).toBe('')

    const served: { fetch(request: Request): Response | Promise<Response> }[] = []
    vi.doMock('@hono/node-server', () => ({ serve: (app: (typeof served)[number]) => served.push(app) }))
    const log = vi.spyOn(console, 'log').mockReturnValue(undefined)
    for (const [index, path] of paths.entries()) {
      if (programs[index]?.mark === 'run') await import(/* @vite-ignore */ path)
    }
    log.mockRestore()
    vi.doUnmock('@hono/node-server')

    expect(served).toHaveLength(1)
    const response = await served[0]?.fetch(new Request('http://localhost/'))
    expect(await response?.text()).toBe('Hello')
  }, 60_000)

  it('API-2 gives every reason with its status, and no other reason', async () => {
    const app = new Hono()
    const reasons = Object.keys(noTotals().refused)
    app.get('/:reason', (c) => {
      for (const reason of allReasons()) {
        if (reason === c.req.param('reason')) return refusalResponse(c, refusal(reason), () => 0, undefined)
      }
      return c.notFound()
    })
    const told: string[] = []
    for (const reason of reasons) {
      const { status } = await app.request(`/${reason}`)
      told.push(`${reason} ${status}`)
    }
    const written = rows.flatMap((row) => {
      const [, reason, status] = /^\| `([a-z_]+)` \| (\d{3}) \|/.exec(row) ?? []
      return reason === undefined ? [] : [`${reason} ${status}`]
    })
    expect(written).toEqual(told)
  })

  it('CFG-3 gives every setting with its bounds and its default', () => {
    const missing = settingsOf(configJsonSchema()).filter(
      ({ name, range, byDefault }) =>
        !rows.some((row) => row.includes(`\`${name}\``) && row.includes(range) && row.includes(byDefault)),
    )
    expect(missing).toEqual([])
  })

  it.each([
    ['Options', 'src/hono/create-admission.ts', 'AdmissionOptions'],
    ['The admin route', 'src/hono/admin-auth.ts', 'AdminOptions'],
    ['Lifecycle and draining', 'src/host/serve.ts', 'ServeOptions'],
    ['A gateway in front', 'src/gateway/create-gateway.ts', 'GatewayOptions'],
    ['A gateway in front', 'src/gateway/create-gateway.ts', 'ProbeOptions'],
    ['A gateway in front', 'src/gateway/proxy-handler.ts', 'ProxyOptions'],
    ['A gateway in front', 'src/gateway/proxy-request.ts', 'ForwardingOptions'],
    ['A gateway in front', 'src/gateway/registry-route.ts', 'RegistryOptions'],
    ['A gateway in front', 'src/gateway/announce.ts', 'AnnounceOptions'],
    ['A gateway in front', 'src/gateway/upstream-events.ts', 'UpstreamSettings'],
  ])('names in "%s" every option of %s: %s', (title, path, name) => {
    const [, text = ''] = new RegExp(`^## ${title}\\n(.*?)(?=^## |(?![^]))`, 'ms').exec(readme) ?? []
    const source = readFileSync(join(ROOT, path), 'utf8')
    const [, body = ''] = new RegExp(`interface ${name}\\b[^{]*\\{\\n(.*?)^\\}`, 'ms').exec(source) ?? []
    const options = [...body.matchAll(/^ {2}readonly (\w+)/gm)].map(([, option = '']) => option)
    expect(options).not.toEqual([])
    expect(options.filter((option) => !new RegExp(`[\`({ ,]${option}\\b`).test(text))).toEqual([])
  })

  it('names only files, folders and scripts that exist', () => {
    const named = [...readme.matchAll(/`((?:src|test|examples|\.ci)\/[\w./-]*|mod\.ts)`/g)].map(([, path = '']) => path)
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])

    const inFolder = [...readme.matchAll(/^\| `(src\/\w+\/)` \| (.*) \|$/gm)].flatMap(([, folder, files = '']) =>
      [...files.matchAll(/`([\w-]+\.ts)`/g)].map(([, file]) => `${folder}${file}`),
    )
    expect(inFolder.length).toBeGreaterThan(20)
    expect(inFolder.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])

    const { scripts }: { scripts: { [name: string]: string } } = JSON.parse(
      readFileSync(join(ROOT, 'package.json'), 'utf8'),
    )
    const run = [...readme.matchAll(/npm (?:run )?(start|test|(?<=run )\w+)/g)].map(([, script = '']) => script)
    expect(run.filter((script) => scripts[script] === undefined)).toEqual([])
  })

  it('maps every folder of src', () => {
    const folders = new Set(filesBelow('src').map((path) => path.split('/').slice(0, -1).join('/')))
    folders.delete('src')
    expect([...folders].filter((folder) => !readme.includes(`| \`${folder}/\``))).toEqual([])
  })
})

function* allReasons(): Generator<Parameters<typeof refusal>[0]> {
  const { refused } = noTotals()
  for (const reason in refused) if (isReason(reason)) yield reason
}

function isReason(reason: string): reason is Parameters<typeof refusal>[0] {
  return reason in noTotals().refused
}

interface Setting {
  readonly name: string
  readonly range: string
  readonly byDefault: string
}

/** Every property of a JSON Schema, wherever it is, as the README should have it. */
function settingsOf(schema: unknown): readonly Setting[] {
  if (typeof schema !== 'object' || schema === null) return []
  const settings: Setting[] = []
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === 'properties') {
      for (const [name, property] of Object.entries(value)) settings.push({ name, ...boundsOf(property) })
    }
    settings.push(...settingsOf(value))
  }
  return settings
}

function boundsOf(property: unknown): Omit<Setting, 'name'> {
  if (typeof property !== 'object' || property === null) return { range: '', byDefault: '' }
  const has = (keyword: string): string => String(Object.entries(property).find(([key]) => key === keyword)?.[1] ?? '')
  const range = has('maximum') === '' ? '' : `${has('minimum')} to ${has('maximum')}`
  return { range, byDefault: has('default') }
}
