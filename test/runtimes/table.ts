import { RUNTIMES, type Runtime } from './servers.ts'

/** Runtime × case, as text. */
export class Table {
  readonly #rows: Map<string, Map<Runtime, string>>

  constructor() {
    this.#rows = new Map()
  }

  set(label: string, runtime: Runtime, cell: string): void {
    const row = this.#rows.get(label) ?? new Map<Runtime, string>()
    this.#rows.set(label, row.set(runtime, cell))
  }

  toString(): string {
    const rows = [['', ...RUNTIMES]]
    for (const [label, cells] of this.#rows) rows.push([label, ...RUNTIMES.map((runtime) => cells.get(runtime) ?? '')])
    const widths = [...RUNTIMES.keys(), RUNTIMES.length].map((column) =>
      Math.max(...rows.map((row) => row[column]?.length ?? 0)),
    )
    return rows
      .map((row) =>
        row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd(),
      )
      .join('\n')
  }
}
