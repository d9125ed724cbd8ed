import { randomFrom } from '../support/random.ts'
import { Undecided } from './model-state.ts'
import { Play } from './play.ts'
import { type Op, scriptOf } from './programs.ts'

export interface Reached {
  protections: number
  batches: number
}

/** Plays the program of a seed; a failure comes with the shortest program found that fails, too. */
export async function runSeed(seed: number, steps: number, reached: Reached): Promise<void> {
  const { ops, profile } = scriptOf(seed, steps, randomFrom(seed))
  const looks = seed % 2 === 0
  const failure = await failureOf(ops, looks, reached)
  if (failure === undefined) return
  const least = await shrink(ops.slice(0, failure.step + 1), looks)
  const program = least.ops.map((op) => `  ${JSON.stringify(op)},`).join('\n')
  throw new Error(
    `seed ${seed} (${profile}, looks: ${looks}) fails at step ${failure.step}: ${failure.error}\n` +
      `shortest: ${least.error}\n${program}`,
    { cause: least.cause },
  )
}

interface Failure {
  readonly step: number
  readonly error: string
  readonly cause: unknown
}

export async function failureOf(ops: readonly Op[], looks: boolean, reached?: Reached): Promise<Failure | undefined> {
  const play = new Play(looks)
  for (const [step, op] of ops.entries()) {
    try {
      await play.step(op)
    } catch (error) {
      if (error instanceof Undecided) break
      return { step, error: error instanceof Error ? error.message : String(error), cause: error }
    }
  }
  if (reached !== undefined) {
    reached.protections += play.model.seen.protections
    reached.batches += play.model.seen.batches
  }
  return undefined
}

/** Leaves out steps, in ever smaller pieces, as long as the rest still fails. */
async function shrink(
  failing: readonly Op[],
  looks: boolean,
): Promise<{ ops: readonly Op[]; error: string; cause: unknown }> {
  let ops = failing
  let failure = await failureOf(ops, looks)
  let runs = 0
  for (let size = Math.ceil(ops.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < ops.length && runs < 1000; ) {
      const rest = [...ops.slice(0, from), ...ops.slice(from + size)]
      const still = await failureOf(rest, looks)
      runs += 1
      if (still === undefined) from += size
      else {
        ops = rest.slice(0, still.step + 1)
        failure = still
      }
    }
  }
  return { ops, error: failure?.error ?? 'no longer fails', cause: failure?.cause }
}
