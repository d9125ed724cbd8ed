import type { Kernel } from '../kernel/kernel.ts'
import { type CallKeeper, Program } from './program.ts'

/** A program without limits, for calls that are only counted; it is no generation. */
export function unmeteredProgram(kernel: Kernel, keeper: CallKeeper): Program {
  const none = { config: Object.freeze({}), concurrency: kernel.unlimited, extras: null }
  return new Program(0, Object.freeze({}), null, keeper, { global: none, contracts: new Map(), none })
}
