import process from 'node:process'
import type { Host } from './serve.ts'

/** The process around a server on Node and Bun. */
export const ownProcess: Pick<Host<unknown>, 'onSignal' | 'exit'> = {
  onSignal(signal, fn) {
    process.on(signal, fn)
    return () => process.off(signal, fn)
  },
  exit: (code) => process.exit(code),
}
