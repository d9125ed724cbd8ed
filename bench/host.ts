import { setImmediate } from 'node:timers'

/** The few things of a runtime that a measurement needs; Node, Bun and Deno. */

export type RuntimeName = 'node' | 'bun' | 'deno'

export const runtime: RuntimeName = 'Bun' in globalThis ? 'bun' : 'Deno' in globalThis ? 'deno' : 'node'

/** Bytes are exact where the engine counts every allocation at once; JSC counts blocks, so its bytes are a lower bound. */
export const countsBytesExactly: boolean = runtime !== 'bun'

/** Arguments that make a program of this bench run in a process of its own, with the collector within reach. */
export function argumentsFor(script: string): string[] {
  // A nursery that has reached its default maximum, as in a server that has run for a while.
  const flags = ['--expose-gc', '--min-semi-space-size=16', '--max-semi-space-size=16']
  if (runtime === 'node') return [...flags, script]
  return runtime === 'bun' ? [script] : ['run', '--allow-all', `--v8-flags=${flags.join(',')}`, script]
}

const bunCollect: unknown = Reflect.get(Object(Reflect.get(globalThis, 'Bun')), 'gc')
const v8Collect: unknown = Reflect.get(globalThis, 'gc')
const jsc: { heapSize(): number } | undefined = runtime === 'bun' ? await import(['bun', 'jsc'].join(':')) : undefined

/** A full collection, done when it returns. */
export function collect(): void {
  if (typeof bunCollect === 'function') bunCollect(true)
  else if (typeof v8Collect === 'function') v8Collect()
}

export function heapBytes(): number {
  return jsc === undefined ? process.memoryUsage().heapUsed : jsc.heapSize()
}

/** The next turn of the event loop, without the millisecond that a timer takes. */
export function nextImmediate(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Lets every microtask and every event that is due go first: a macrotask. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0))
}
