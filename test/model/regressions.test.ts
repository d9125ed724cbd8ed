import { describe, expect, it } from 'vitest'
import type { ConfigInput } from '../../src/config/types.ts'
import { expectQuiet, setup } from '../support/core.ts'

const queue = { maxQueuedCalls: 10, maxQueueDelayMs: 100 }

describe('what the random programs have found', () => {
  it.each([
    ['', undefined],
    ['#', undefined],
    ['global#tenant:1:t,', 't'],
  ])(
    'ADM-7 a waiter with delivery key %j and one without, of tenant %j, do not mix up their places',
    async (client, tenant) => {
      const config: ConfigInput = {
        queue,
        global: { concurrency: 0, partitions: { tenant: { concurrency: 2 } } },
        contracts: { '/a': { delivery: { key: 'client', maxOpenBodies: 1 } } },
      }
      const key = (): undefined => undefined
      const { core, clock, hold, flush } = setup(config, { selectors: { tenant: key, client: key } })
      const calls = [
        hold({ contract: '/a', keys: { client } }),
        hold({ contract: '/a', keys: { tenant } }),
        hold({ contract: '/a', keys: { client } }),
      ]
      await core.update({ ...config, global: { ...config.global, concurrency: 3 } })
      await flush()
      expect(calls.map((call) => call.started)).toEqual([true, true, false])
      expect(core.snapshot().deliveries).toMatchObject([{ openBodies: 1 }])
      calls[0]?.release()
      await flush()
      for (const call of calls.slice(1)) call.release()
      expectQuiet({ core, clock })
      expect(core.snapshot().deliveries).toMatchObject([{ keys: 0, openBodies: 0 }])
    },
  )

  it('ADM-10 a timeout names the scope that is full, not one that was full when the call came', async () => {
    const config = (perMethod: number): ConfigInput => ({
      queue,
      global: { concurrency: 1 },
      contracts: { '/a': { methods: { m: { concurrency: perMethod } } } },
    })
    const { core, clock, hold, flush } = setup(config(1))
    const [running, waiting] = [hold({ contract: '/a', method: 'm' }), hold({ contract: '/a', method: 'm' })]
    await core.update(config(2))
    clock.advance(100)
    await flush()
    expect(waiting.refusal).toEqual({ kind: 'refused', reason: 'queue_timeout', scope: 'global' })
    running.release()
    expectQuiet({ core, clock })
  })
})
