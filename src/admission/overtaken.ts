import type { Call } from '../call.ts'

const NO_CALL: Call = {}

/**
 * A call whose own code, its selectors and getters, changed what decides about it while it was judged: it published,
 * disabled, drained or stopped, or it admitted or released others. Such a call comes in anew, for it must not take
 * permits of states that are gone by now (STA-3), nor slip through a door that has been closed (DRN-3).
 */
export class Overtaken {
  /** How often it has changed what calls are judged by, or whether they are: by anybody. */
  changes: number
  #call: Call

  constructor() {
    this.changes = 0
    this.#call = NO_CALL
  }

  /** Keeps a call for {@link take}, in the same step. Null, so that nobody takes it for an answer. */
  keep(call: Call, asked: Call): null {
    this.#call = notAskedAgain(call, asked)
    return null
  }

  take(): Call {
    const call = this.#call
    this.#call = NO_CALL
    return call
  }
}

/** The same call, but for what it was asked already and has said: so it ends, whatever that code does each time. */
function notAskedAgain(call: Call, asked: Call): Call {
  const rest: Call = {
    get contract() {
      return call.contract
    },
    get method() {
      return call.method
    },
    get oneWay() {
      return call.oneWay
    },
    get bytes() {
      return call.bytes
    },
    get keys() {
      return call.keys
    },
    get bodiless() {
      return call.bodiless
    },
    get signal() {
      const { signal } = call
      return typeof signal === 'function' ? () => signal.call(call) : signal
    },
  }
  return Object.defineProperties(rest, Object.getOwnPropertyDescriptors(asked))
}
