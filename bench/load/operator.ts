import type { ConfigInput } from '../../src/config/types.ts'
import { ADMIN_PATH, ADMIN_TOKEN } from './policies.ts'

/** Changes limits through the admin route, each change prepared from the last one. */
export class Operator {
  readonly #url: string
  #etag: string
  applied: number

  private constructor(url: string) {
    this.#url = url
    this.#etag = ''
    this.applied = 0
  }

  static async at(port: number): Promise<Operator> {
    const operator = new Operator(`http://127.0.0.1:${port}${ADMIN_PATH}/config`)
    await operator.#read()
    return operator
  }

  /** Sets one limit after the other, in a circle, until it is told to stop. */
  async change(config: ConfigInput, limits: readonly number[], everyMs: number, isOver: () => boolean): Promise<void> {
    let dueMs = performance.now()
    for (let next = 1; !isOver(); next += 1) {
      dueMs += everyMs
      const waitMs = Math.max(0, dueMs - performance.now())
      await new Promise((resolve) => setTimeout(resolve, waitMs))
      if (isOver()) return
      await this.#put(config, limits[next % limits.length] ?? 0)
    }
  }

  async set(config: ConfigInput, limit: number): Promise<void> {
    await this.#put(config, limit)
    this.applied = 0
  }

  async #read(): Promise<void> {
    const response = await fetch(this.#url, { headers: { Authorization: `Bearer ${ADMIN_TOKEN}` } })
    await this.#take(response)
  }

  async #put(config: ConfigInput, concurrency: number): Promise<void> {
    const response = await fetch(this.#url, {
      method: 'PUT',
      headers: {
        Authorization: `Bearer ${ADMIN_TOKEN}`,
        'Content-Type': 'application/json',
        'If-Match': this.#etag,
      },
      body: JSON.stringify({ ...config, global: { concurrency } }),
    })
    const { config: current }: { config: ConfigInput } = JSON.parse(await this.#take(response))
    if (current.global?.concurrency !== concurrency) throw new Error(`The limit is not ${concurrency}`)
    this.applied += 1
  }

  async #take(response: Response): Promise<string> {
    const body = await response.text()
    if (response.status !== 200) throw new Error(`The admin route answers ${response.status}: ${body}`)
    this.#etag = response.headers.get('etag') ?? ''
    return body
  }
}
