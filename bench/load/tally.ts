import { cpus } from 'node:os'
import process from 'node:process'
import type { Answer } from './connection.ts'
import type { Outcome, Percentiles } from './protocol.ts'

const REFUSAL = /^\{"type":"urn:sluice:refused:(\w+)"/

/** What came of the requests of one window. */
export class Tally {
  readonly #body: string
  readonly #goodWithinMs: number
  readonly #admittedMs: number[]
  readonly #refusedMs: number[]
  readonly #lateMs: number[]
  readonly #reasons: Map<string, number>
  readonly #startMs: number
  readonly #startCpuMs: number
  readonly #startMachineCpuMs: number
  #sent: number
  #good: number
  #lost: number
  #wrong: number
  #firstWrong: string | null

  constructor(body: string, goodWithinMs: number) {
    this.#body = body
    this.#goodWithinMs = goodWithinMs
    this.#admittedMs = []
    this.#refusedMs = []
    this.#lateMs = []
    this.#reasons = new Map()
    this.#sent = 0
    this.#good = 0
    this.#lost = 0
    this.#wrong = 0
    this.#firstWrong = null
    this.#startMs = performance.now()
    this.#startCpuMs = cpuMs()
    this.#startMachineCpuMs = machineCpuMs()
  }

  lost(): void {
    this.#sent += 1
    this.#lost += 1
  }

  /** Sent in a closed loop: at once. */
  sent(): void {
    this.#sent += 1
  }

  sentLate(lateMs: number): void {
    this.#sent += 1
    this.#lateMs.push(lateMs)
  }

  /** Is the answer one of the two that are right? */
  answered(answer: Answer | undefined, latencyMs: number): void {
    if (answer?.status === 200 && answer.body === this.#body) {
      this.#admittedMs.push(latencyMs)
      if (latencyMs <= this.#goodWithinMs) this.#good += 1
      return
    }
    const reason = answer?.status === 503 ? REFUSAL.exec(answer.body)?.[1] : undefined
    if (answer !== undefined && reason !== undefined && /\r\nretry-after: \d+/i.test(answer.head)) {
      this.#refusedMs.push(latencyMs)
      this.#reasons.set(reason, (this.#reasons.get(reason) ?? 0) + 1)
      return
    }
    this.#wrong += 1
    this.#firstWrong ??= answer === undefined ? 'no answer' : `${answer.head}\r\n\r\n${answer.body}`
  }

  /** No answer in the time that there was. */
  unanswered(requests: number): void {
    this.#wrong += requests
    this.#firstWrong ??= 'no answer in time'
  }

  outcome(): Outcome {
    return {
      sent: this.#sent,
      admitted: this.#admittedMs.length,
      good: this.#good,
      refused: this.#refusedMs.length,
      reasons: Object.fromEntries(this.#reasons),
      lost: this.#lost,
      wrong: this.#wrong,
      firstWrong: this.#firstWrong,
      admittedMs: percentiles(this.#admittedMs),
      refusedMs: percentiles(this.#refusedMs),
      lateMs: percentiles(this.#lateMs),
      elapsedMs: performance.now() - this.#startMs,
      cpuMs: cpuMs() - this.#startCpuMs,
      machineCpuMs: machineCpuMs() - this.#startMachineCpuMs,
    }
  }
}

/** Processor time of this process so far. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** Processor time of everything on the machine so far. */
export function machineCpuMs(): number {
  return cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0)
}

/** The least values that a half, 99 % and all do not exceed. */
function percentiles(values: readonly number[]): Percentiles {
  const sorted = Float64Array.from(values).sort()
  const at = (part: number): number | null => sorted[Math.ceil(sorted.length * part) - 1] ?? null
  return { p50: at(0.5), p99: at(0.99), max: at(1) }
}
