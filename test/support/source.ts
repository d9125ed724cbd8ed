import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'vite'

export const ROOT: string = fileURLToPath(new URL('../..', import.meta.url))

export interface Import {
  /** A path from the root for a relative one, else the package, `node:` ones as they are. */
  readonly target: string
  readonly isRelative: boolean
  /** Nothing of it is left at run time. */
  readonly isTypeOnly: boolean
  readonly line: number
}

/** What the tidy test looks at in one source file. */
export interface Source {
  /** From the root, with `/`. */
  readonly path: string
  readonly lineCount: number
  readonly imports: readonly Import[]
  /** Names of globals or variables that are used, apart from property names. */
  readonly names: ReadonlyMap<string, number> // name → line
  /** What the house style forbids, as `line: what`. */
  readonly faults: readonly string[]
  readonly tests: readonly TestName[]
}

export interface TestName {
  readonly line: number
  /** The text up to the first `${`; undefined when it is no literal. */
  readonly name: string | undefined
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [property: string]: unknown
}

/** Every file below the folders, by path from the root. */
export function filesBelow(...folders: readonly string[]): readonly string[] {
  return folders
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => posix.join(...entry.parentPath.slice(ROOT.length).split(/[\\/]/), entry.name)),
    )
    .sort()
}

export function readSource(path: string, text: string = readFileSync(join(ROOT, path), 'utf8')): Source {
  const { program, comments, errors } = parseSync(path, text)
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`)
  const lineAt = (offset: number): number => text.slice(0, offset).split('\n').length

  const imports: Import[] = []
  const names = new Map<string, number>()
  const faults: string[] = []
  const tests: TestName[] = []
  const fault = (at: number, what: string): number => faults.push(`${lineAt(at)}: ${what}`)

  for (const comment of comments) {
    const forbidden = /TODO|FIXME|XXX|@ts-(?:ignore|expect-error|nocheck)|biome-ignore (?!format)|eslint-disable/.exec(
      comment.value,
    )
    // A test of the types says which programs must not compile.
    const isTypeTest = forbidden?.[0] === '@ts-expect-error' && path.startsWith('test/types/')
    if (forbidden !== null && !isTypeTest) fault(comment.start, forbidden[0])
  }
  if (!isNode(program)) throw new Error(`${path}: no syntax tree`)
  visit(program, undefined, (node, parent) => {
    switch (node.type) {
      case 'ImportDeclaration':
      case 'ExportNamedDeclaration':
      case 'ExportAllDeclaration':
      case 'ImportExpression':
      case 'TSImportType': {
        const { source } = node
        if (!isNode(source) || typeof source.value !== 'string') break
        const isRelative = source.value.startsWith('.')
        const target = isRelative ? posix.join(posix.dirname(path), source.value) : packageOf(source.value)
        imports.push({ target, isRelative, isTypeOnly: isTypeOnly(node), line: lineAt(node.start) })
        break
      }
      case 'TSAnyKeyword':
        fault(node.start, 'any')
        break
      case 'TSAsExpression':
        if (text.slice(node.start, node.end).match(/\bas\s+const$/) === null) fault(node.start, 'as')
        break
      case 'TSTypeAssertion':
        fault(node.start, '<T>assertion')
        break
      case 'TSNonNullExpression':
        fault(node.start, '!')
        break
      case 'TSEnumDeclaration':
        fault(node.start, 'enum')
        break
      case 'TSParameterProperty':
        fault(node.start, 'parameter property')
        break
      case 'ExportDefaultDeclaration':
        fault(node.start, 'default export')
        break
      case 'Identifier':
        if (typeof node.name === 'string' && !isPropertyName(node, parent) && !names.has(node.name)) {
          names.set(node.name, lineAt(node.start))
        }
        break
      case 'CallExpression': {
        const callee = isNode(node.callee) ? text.slice(node.callee.start, node.callee.end) : ''
        if (!/^(?:it|test|describe)\b/.test(callee)) break
        const narrowed = /\.(?:only|skip|todo|fails|skipIf|runIf)\b/.exec(callee)
        if (narrowed !== null) fault(node.start, narrowed[0])
        // `it.each(rows)` is called by the call that has the name.
        if (/^(?:it|test)\b/.test(callee) && !/\.each$/.test(callee)) {
          tests.push({ line: lineAt(node.start), name: nameOf(node) })
        }
        break
      }
    }
  })
  return { path, lineCount: text.split('\n').length - 1, imports, names, faults, tests }
}

function isTypeOnly(node: Node): boolean {
  if (node.type === 'TSImportType' || node.importKind === 'type' || node.exportKind === 'type') return true
  const { specifiers } = node
  if (!Array.isArray(specifiers) || specifiers.length === 0) return false
  return specifiers.every((each) => isNode(each) && (each.importKind === 'type' || each.exportKind === 'type'))
}

function nameOf(call: Node): string | undefined {
  const first = Array.isArray(call.arguments) ? call.arguments[0] : undefined
  if (!isNode(first)) return undefined
  if (first.type === 'Literal' && typeof first.value === 'string') return first.value
  if (first.type !== 'TemplateLiteral' || !Array.isArray(first.quasis)) return undefined
  const head: unknown = first.quasis[0]?.value?.cooked
  return typeof head === 'string' && head !== '' ? head : undefined
}

/** `x.Date` and `{ Date: 1 }` name a property; `globalThis.Date` names the global. */
function isPropertyName(node: Node, parent: Node | undefined): boolean {
  if (parent === undefined || parent.computed === true) return false
  if (parent.type === 'MemberExpression' && parent.property === node) {
    return !(isNode(parent.object) && parent.object.name === 'globalThis')
  }
  return /^(?:Property|PropertyDefinition|MethodDefinition|TSPropertySignature|TSMethodSignature)$/.test(parent.type)
    ? parent.key === node && parent.shorthand !== true
    : false
}

function packageOf(specifier: string): string {
  if (specifier.startsWith('node:')) return specifier
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

function visit(node: Node, parent: Node | undefined, enter: (node: Node, parent: Node | undefined) => void): void {
  enter(node, parent)
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child, node, enter)
  }
}
