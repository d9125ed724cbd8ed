import { existsSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { filesBelow, ROOT, readSource, type Source } from './support/source.ts'

const isTypeScript = (path: string): boolean => path.endsWith('.ts')
const src = ['mod.ts', ...filesBelow('src').filter(isTypeScript)].map((path) => readSource(path))
const tests = filesBelow('test').filter(isTypeScript)
const test = tests.map((path) => readSource(path))

/** The folders in the order in which they may know of each other; the files directly in src/ are listed below. */
const LAYERS: readonly (readonly string[])[] = [
  ['leaf'],
  ['config'],
  ['kernel'],
  ['program'],
  ['admission', 'control'], // the two planes: neither knows the other, not even by type
  ['core'],
  ['hono'],
  ['gateway'],
  ['host'],
  ['entry'],
]
const LEAF_FILES = [
  'alarm',
  'assert',
  'call',
  'clock',
  'errors',
  'heap',
  'json-pointer',
  'list',
  'manual-clock',
  'quietly',
  'refusal',
  'steps',
  'totals',
]
/** One file per public entry; the hosts are entries of their own. */
const ENTRY_FILES = ['mod.ts', 'src/core.ts', 'src/testing.ts', 'src/gateway.ts']
const HOST_ENTRIES = ['src/host/node.ts', 'src/host/deno.ts', 'src/host/bun.ts']

/** The packages a layer may import; every other import is a fault. */
const PACKAGES: { readonly [layer: string]: readonly RegExp[] } = {
  config: [/^valibot$/, /^@valibot\/to-json-schema$/],
  hono: [/^hono$/],
  gateway: [/^hono$/, /^valibot$/],
  host: [/^node:/, /^hono$/, /^@hono\/node-server$/],
}

/** Time and chance come from outside, so that a test can hold them; these files are where they come from. */
const TIME = ['performance', 'Date', 'setTimeout', 'setInterval', 'setImmediate', 'scheduler']
const MAY_NAME_TIME: { readonly [path: string]: readonly string[] } = {
  'src/clock.ts': ['performance', 'setTimeout'],
}

const MAX_LINES = 300
/** Longer ones, each with its own bound. */
const LONGER: { readonly [path: string]: number } = {
  'src/admission-core.ts': 350, // the one file that knows both planes: mostly the contract of each public method
}

/** The tags of the specification and the highest number of each. */
const RULES: { readonly [prefix: string]: number } = {
  CFG: 4,
  PUB: 12,
  STA: 5,
  ADM: 11,
  CON: 5,
  QUE: 12,
  RAT: 4,
  PAR: 4,
  DRN: 7,
  GWY: 8,
  REL: 6,
  RUN: 7,
  WEB: 8,
  ADX: 8,
  API: 5,
}

/** What looks like a tag and is none: UTF-8, SHA-256. */
const NO_RULES: readonly string[] = ['UTF', 'SHA', 'ABC', 'XYZ']

/** Where a test may pin what no rule says: our own tools, and the behaviour of leaf files. */
const MAY_HAVE_NO_TAG: readonly RegExp[] = [
  /^test\/(?:tidy|readme|heap|list|clock|manual-clock|errors|alarm|assert|totals)\.test\.ts$/,
  /^test\/kernel\/(?:concurrency|queue-ledger)\.test\.ts$/,
  /^test\/(?:support|package|types)\//,
]

/** The host's own clock is tested against the host's own time. */
const MAY_SLEEP: readonly string[] = ['test/clock.test.ts']

function layerOf(path: string): string {
  if (ENTRY_FILES.includes(path)) return 'entry'
  const [, folder = '', ...below] = path.split('/')
  if (below.length > 0) return folder
  const name = basename(folder, '.ts')
  return name === 'admission-core' ? 'core' : LEAF_FILES.includes(name) ? 'leaf' : `unplaced ${path}`
}

function rankOf(layer: string): number {
  const rank = LAYERS.findIndex((layers) => layers.includes(layer))
  if (rank < 0) throw new Error(`No place in the order: ${layer}. Add it to LAYERS, LEAF_FILES or ENTRY_FILES.`)
  return rank
}

function offences(sources: readonly Source[], find: (source: Source) => readonly string[]): readonly string[] {
  return sources.flatMap((source) => find(source).map((what) => `${source.path}:${what}`))
}

describe('src', () => {
  it('imports only from the own folder and from folders before it in the order', () => {
    const wrong = offences(src, ({ path, imports }) => {
      const own = layerOf(path)
      return imports
        .filter(({ isRelative, target }) => {
          if (!isRelative) return false
          const other = layerOf(target)
          return other !== own && rankOf(other) >= rankOf(own)
        })
        .map(({ line, target }) => `${line}: imports ${target}`)
    })
    expect(wrong).toEqual([])
  })

  it('keeps the control plane out of the gateway', () => {
    const wrong = offences(src, ({ path, imports }) =>
      layerOf(path) === 'gateway'
        ? imports.filter(({ target }) => target.startsWith('src/control/')).map(({ target }) => ` ${target}`)
        : [],
    )
    expect(wrong).toEqual([])
  })

  it('imports packages only where the folder may: valibot, hono and node: each have their place', () => {
    const wrong = offences(src, ({ path, imports }) =>
      imports
        .filter(({ isRelative, target }) => !isRelative && !PACKAGES[layerOf(path)]?.some((may) => may.test(target)))
        .map(({ line, target }) => `${line}: imports ${target}`),
    )
    expect(wrong).toEqual([])
  })

  it('imports no file in a circle', () => {
    // Types may refer to each other; what runs may not.
    const importsOf = new Map(
      src.map(({ path, imports }) => [path, imports.filter((each) => !each.isTypeOnly).map(({ target }) => target)]),
    )
    const done = new Set<string>()
    const circles: string[] = []
    const walk = (path: string, trail: readonly string[]): void => {
      if (trail.includes(path)) circles.push([...trail.slice(trail.indexOf(path)), path].join(' → '))
      if (done.has(path)) return
      done.add(path)
      for (const target of importsOf.get(path) ?? []) walk(target, [...trail, path])
    }
    for (const { path } of src) walk(path, [])
    expect(circles).toEqual([])
  })

  it('names clocks and timers only in the clock', () => {
    const wrong = offences(src, ({ path, names }) =>
      TIME.filter((name) => names.has(name) && !MAY_NAME_TIME[path]?.includes(name)).map(
        (name) => `${names.get(name)}: ${name}`,
      ),
    )
    expect(wrong).toEqual([])
  })

  it('has no file that no public entry reaches', () => {
    const byPath = new Map(src.map((source) => [source.path, source]))
    const reached = new Set<string>()
    const reach = (path: string): void => {
      if (reached.has(path)) return
      reached.add(path)
      for (const { isRelative, target } of byPath.get(path)?.imports ?? []) if (isRelative) reach(target)
    }
    for (const entry of [...ENTRY_FILES, ...HOST_ENTRIES]) reach(entry)
    expect(src.map(({ path }) => path).filter((path) => !reached.has(path))).toEqual([])
  })

  it(`has no file of more than ${MAX_LINES} lines`, () => {
    const long = src.filter(({ path, lineCount }) => lineCount > (LONGER[path] ?? MAX_LINES))
    expect(long.map(({ path, lineCount }) => `${path}: ${lineCount} lines`)).toEqual([])
  })
})

describe('src and test', () => {
  it('have no any, !, enum, default export, suppression, unfinished business or narrowed test run; src has no as', () => {
    // A test may hand in what the types forbid.
    const inTests = offences(test, ({ faults }) => faults.filter((fault) => !/^\d+: as$/.test(fault)))
    expect([...offences(src, ({ faults }) => faults), ...inTests]).toEqual([])
  })

  it('have files in kebab-case', () => {
    const kebab = /^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.test)?\.[a-z]+$/
    expect([...src, ...test].map(({ path }) => path).filter((path) => !kebab.test(basename(path)))).toEqual([])
  })
})

describe('test', () => {
  it('names every test with a sentence led by the tag of its rule', () => {
    const wrong = offences(test, ({ path, tests }) =>
      MAY_HAVE_NO_TAG.some((may) => may.test(path))
        ? []
        : tests
            .filter(({ name }) => name !== undefined && !/^[A-Z]{3}-\d+ /.test(name))
            .map(({ line, name }) => `${line}: ${name}`),
    )
    expect(wrong).toEqual([])
  })

  it('names only rules that exist', () => {
    const wrong = [...src.map(({ path }) => path), ...tests].flatMap((path) => {
      const text = readFileSync(join(ROOT, path), 'utf8')
      return [...text.matchAll(/\b([A-Z]{3})-(\d+)\b/g)]
        .filter(([, prefix = '']) => !NO_RULES.includes(prefix))
        .filter(([, prefix = '', number]) => !(Number(number) >= 1 && Number(number) <= (RULES[prefix] ?? 0)))
        .map(([tag]) => `${path}: ${tag}`)
    })
    expect(wrong).toEqual([])
  })

  it('sleeps only where real hosts run', () => {
    const wrong = offences(test, ({ path, names }) =>
      /^test\/(?:runtimes|package)\//.test(path) || MAY_SLEEP.includes(path)
        ? []
        : ['setTimeout', 'setInterval'].filter((name) => names.has(name)).map((name) => `${names.get(name)}: ${name}`),
    )
    expect(wrong).toEqual([])
  })
})

describe('the package', () => {
  const json = (path: string): { exports: { [entry: string]: string | { types: string; default: string } } } =>
    JSON.parse(readFileSync(join(ROOT, path), 'utf8'))

  it('has the same entries in package.json, in deno.json and in src', () => {
    const { exports: denoExports } = json('deno.json')
    const { exports: npmExports } = json('package.json')
    const sources = Object.entries(npmExports).flatMap(([entry, target]) => {
      if (typeof target === 'string') return [] // package.json itself
      expect(target.types).toBe(target.default.replace(/\.js$/, '.d.ts'))
      return [[entry, target.default.replace(/^\.\/dist\/(.*)\.js$/, './$1.ts')]]
    })
    expect(Object.fromEntries(sources)).toEqual(denoExports)
    const entries = [...ENTRY_FILES, ...HOST_ENTRIES].filter((path) => existsSync(join(ROOT, path)))
    expect(Object.values(denoExports).sort()).toEqual(entries.map((path) => `./${path}`).sort())
  })
})

describe('the tidy test itself', () => {
  it('finds each kind of fault', () => {
    const { faults, imports, names, tests } = readSource(
      'src/hono/x.ts',
      [
        "import { type A, a as b } from '../a.ts'",
        "import type { C } from '@scope/c/deep'",
        'export const x = b as any, y = x!, z = [1] as const',
        'export enum E {}',
        'export default class { constructor(private a: A) {} }',
        '// TO' + 'DO: nothing',
        "it.only('ABC-1 works', () => {})",
        "it.each([1])('XYZ-2 %d', () => globalThis.Date.now() + x.performance)",
      ].join('\n'),
    )
    expect(faults).toEqual([
      '6: TO' + 'DO',
      '3: as',
      '3: any',
      '3: !',
      '4: enum',
      '5: default export',
      '5: parameter property',
      '7: .only',
    ])
    expect(imports).toEqual([
      { target: 'src/a.ts', isRelative: true, isTypeOnly: false, line: 1 },
      { target: '@scope/c', isRelative: false, isTypeOnly: true, line: 2 },
    ])
    expect([names.has('Date'), names.has('performance')]).toEqual([true, false])
    expect(tests.map(({ name }) => name)).toEqual(['ABC-1 works', 'XYZ-2 %d'])
  })
})
