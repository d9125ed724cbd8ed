import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { Exchange } from './protocol.ts'

interface Pending {
  resolve(line: string): void
  reject(error: Error): void
}

const ANSWER_TIMEOUT_MS = 60_000
const END_TIMEOUT_MS = 2000

/** A process that answers questions, see `answer.ts`. All that are open fail when it ends. */
export class Remote<P extends { readonly [K in keyof P]: Exchange<unknown, unknown> }> {
  readonly #name: string
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>
  readonly #pending: Pending[]
  readonly #errors: string[]
  readonly #greeting: Promise<string>
  #ended: string | undefined

  constructor(name: string, command: string, args: readonly string[]) {
    this.#name = name
    this.#pending = []
    this.#errors = []
    this.#ended = undefined
    this.#process = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] })
    createInterface({ input: this.#process.stdout }).on('line', (line) => this.#pending.shift()?.resolve(line))
    this.#process.stderr.on('data', (data) => {
      if (this.#errors.length < 100) this.#errors.push(`${data}`)
    })
    this.#greeting = this.#line()
    this.#greeting.catch(() => {}) // for whoever asks
    this.#process.stdin.on('error', () => {}) // it has ended, which is told below
    this.#process.on('error', (error) => this.#end(error.message))
    this.#process.on('close', (code) => this.#end(`ended with ${code}`))
  }

  /** What it says once, when it is ready. */
  async greeting<Greeting>(): Promise<Greeting> {
    return JSON.parse(await this.#greeting)
  }

  async ask<K extends keyof P & string>(kind: K, asked: P[K]['asked']): Promise<P[K]['answered']> {
    const line = this.#line()
    this.#process.stdin.write(`${JSON.stringify({ kind, asked })}\n`)
    const { answered, error }: { answered: P[K]['answered']; error?: string } = JSON.parse(await line)
    if (error !== undefined) throw new Error(`${this.#name}: ${error}`)
    return answered
  }

  /** Asks it to end, and makes it. */
  async end(): Promise<void> {
    if (this.#ended !== undefined) return
    const closed = once(this.#process, 'close')
    this.#process.stdin.end()
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), END_TIMEOUT_MS)
    await closed
    clearTimeout(timer)
  }

  #line(): Promise<string> {
    if (this.#ended !== undefined) return Promise.reject(new Error(this.#ended))
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#errors.push('no answer in time')
        this.#process.kill('SIGKILL')
      }, ANSWER_TIMEOUT_MS)
      this.#pending.push({
        resolve(line) {
          clearTimeout(timer)
          resolve(line)
        },
        reject(error) {
          clearTimeout(timer)
          reject(error)
        },
      })
    })
  }

  #end(how: string): void {
    this.#ended ??= `${this.#name} ${how}: ${this.#errors.join('').trim()}`
    for (const { reject } of this.#pending.splice(0)) reject(new Error(this.#ended))
  }
}
