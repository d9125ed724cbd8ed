import { describe, expect, it } from 'vitest'
import { runSeed } from './run.ts'

// SLUICE_MODEL_SEEDS plays more programs, SLUICE_MODEL_FROM begins elsewhere.
const SEEDS = Number(process.env.SLUICE_MODEL_SEEDS ?? 300)
const FROM = Number(process.env.SLUICE_MODEL_FROM ?? 0)
const STEPS = 200
const BLOCK = 300

describe('the core against a naive model', () => {
  for (let from = FROM; from < FROM + SEEDS; from += BLOCK) {
    const to = Math.min(from + BLOCK, FROM + SEEDS)
    it(`ADM-1 ADM-4 ADM-5 CON-4 QUE-1 STA-1 PUB-5 random programs come out as in the model, seeds ${from} to ${to - 1}`, async () => {
      const reached = { protections: 0, batches: 0 }
      for (let seed = from; seed < to; seed += 1) await runSeed(seed, STEPS, reached)
      // The corners are reached: waiters that were passed too often, and batches that were cut.
      if (to - from < BLOCK) return
      expect(Object.entries(reached).filter(([, times]) => times === 0)).toEqual([])
    }, 600_000)
  }

  it('QUE-9 ADM-5 seed 496: a waiter joins a timed line that has been left dirty while another scope blocked all', async () => {
    await runSeed(496, STEPS, { protections: 0, batches: 0 })
  })
})
