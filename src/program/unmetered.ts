import type { Kernel } from '../kernel/kernel.ts'
import { ASKS_NOTHING, type CallKeeper, Program, Route } from './program.ts'

/** A program without limits, for calls that are only counted; it is no generation. */
export function unmeteredProgram(kernel: Kernel, keeper: CallKeeper): Program {
  const program = new Program(0, Object.freeze({}), null, keeper)
  const slots = { global: kernel.unlimited, contract: kernel.unlimited, method: kernel.unlimited }
  program.bind(new Route(program, slots, ASKS_NOTHING), new Map())
  return program
}
