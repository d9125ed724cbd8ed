import process from 'node:process'
import { createInterface } from 'node:readline'
import type { Exchange } from './protocol.ts'

type Answers<P extends { readonly [K in keyof P]: Exchange<unknown, unknown> }> = {
  readonly [K in keyof P]: (asked: P[K]['asked']) => P[K]['answered'] | Promise<P[K]['answered']>
}

/** Says hello, answers questions one after the other, and ends the process when there can be no more of them. */
export function answerQuestions<P extends { readonly [K in keyof P]: Exchange<unknown, unknown> }>(
  greeting: object,
  answers: Answers<P>,
): void {
  const say = (what: object): void => void process.stdout.write(`${JSON.stringify(what)}\n`)
  const answer = async (line: string): Promise<void> => {
    const { kind, asked }: { kind: keyof P; asked: P[keyof P]['asked'] } = JSON.parse(line)
    try {
      say({ answered: (await answers[kind](asked)) ?? null })
    } catch (error) {
      say({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    }
  }
  let turn = Promise.resolve()
  createInterface({ input: process.stdin })
    .on('line', (line) => {
      turn = turn.then(() => answer(line))
    })
    .on('close', () => process.exit(0))
  say(greeting)
}
