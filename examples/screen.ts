/** One second of the demo. */
export interface Row {
  readonly second: number
  readonly limit: number
  readonly active: number
  readonly queued: number
  readonly admitted: number
  readonly refused: number
  readonly p99Ms: number
}

const HEADER = ' sec  limit  active  queued  admitted/s  refused/s  p99 ms'
const BAR_CELLS = 20
const CLEAR = '\x1b[2J\x1b[H'

/** Shows rows and notes: on a terminal one screen that is drawn anew, else a line for each as it comes. */
export class Screen {
  readonly #title: string
  readonly #isTerminal: boolean
  readonly #lines: string[] = []
  readonly #write: (text: string) => void

  constructor(title: string, stdout: NodeJS.WriteStream) {
    this.#title = title
    this.#isTerminal = stdout.isTTY === true
    this.#write = (text) => stdout.write(text)
    if (!this.#isTerminal) this.#write(`${title}\n\n${HEADER}\n`)
  }

  row({ second, limit, active, queued, admitted, refused, p99Ms }: Row): void {
    const cells = [
      String(second).padStart(4),
      String(limit).padStart(7),
      String(active).padStart(8),
      String(queued).padStart(8),
      String(admitted).padStart(12),
      String(refused).padStart(11),
      p99Ms.toFixed(0).padStart(8),
    ].join('')
    this.#add(this.#isTerminal ? `${cells}  ${bar(active, limit)}` : cells)
  }

  /** What somebody just did. */
  note(text: string): void {
    this.#add(this.#isTerminal ? `\x1b[36m   → ${text}\x1b[0m` : `   → ${text}`)
  }

  #add(line: string): void {
    this.#lines.push(line)
    if (!this.#isTerminal) this.#write(`${line}\n`)
    else this.#write(`${CLEAR}\x1b[1m${this.#title}\x1b[0m\n\n\x1b[2m${HEADER}\x1b[0m\n${this.#lines.join('\n')}\n`)
  }
}

/** Running orders against their limit: full is green, over it (after a shrink, for a moment) is red. */
function bar(active: number, limit: number): string {
  const filled = limit === 0 ? 0 : Math.min(BAR_CELLS, Math.round((active / limit) * BAR_CELLS))
  const colour = active > limit ? 31 : 32
  return `\x1b[${colour}m${'█'.repeat(filled)}\x1b[0m\x1b[2m${'░'.repeat(BAR_CELLS - filled)}\x1b[0m`
}
