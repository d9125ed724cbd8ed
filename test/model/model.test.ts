import { describe, expect, it } from 'vitest'
import { runSeed } from './run.ts'

// SLUICE_MODEL_SEEDS plays more programs, SLUICE_MODEL_FROM begins elsewhere.
const SEEDS = Number(process.env.SLUICE_MODEL_SEEDS ?? 300)
const FROM = Number(process.env.SLUICE_MODEL_FROM ?? 0)
const STEPS = 200

describe('the core against a naive model', () => {
  it(`ADM-1 ADM-4 ADM-5 CON-4 QUE-1 STA-1 PUB-5 ${SEEDS} random programs of calls, time and updates come out as in the model`, async () => {
    const reached = { protections: 0, batches: 0 }
    for (let seed = FROM; seed < FROM + SEEDS; seed += 1) await runSeed(seed, STEPS, reached)
    // The corners are reached: waiters that were passed too often, and batches that were cut.
    if (SEEDS >= 100) {
      expect(reached.protections).toBeGreaterThan(0)
      expect(reached.batches).toBeGreaterThan(0)
    }
  }, 3_600_000)
})
