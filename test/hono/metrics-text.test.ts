import { describe, expect, it } from 'vitest'
import { AdmissionCore } from '../../src/admission-core.ts'
import { metricsText } from '../../src/hono/metrics-text.ts'
import { ManualClock } from '../../src/manual-clock.ts'

const rate = { algorithm: 'fixed-window', permitLimit: 50, windowMs: 1500 } as const

function sample(text: string, series: string): number | undefined {
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

describe('metrics text', () => {
  it('ADX-2 every line is a comment or a sample of the format, and each family is declared once, before its samples', () => {
    const core = new AdmissionCore({
      clock: new ManualClock(),
      config: {
        global: { concurrency: 3, rate, partitions: { tenant: { concurrency: 2, rate } } },
        contracts: { '/a': { concurrency: 1, methods: { 'GET /a': { rate } } } },
        queue: { maxQueuedCalls: 5 },
      },
      selectors: { tenant: () => 'secret-key' },
    })
    core.admit({ contract: '/a' })
    const text = metricsText(core.snapshot())
    expect(text.endsWith('\n')).toBe(true)
    const declared: string[] = []
    for (const line of text.trimEnd().split('\n')) {
      const type = /^# TYPE (sluice_[a-z_]+) (counter|gauge)$/.exec(line)
      if (type?.[1] !== undefined) {
        expect(declared).not.toContain(type[1])
        expect(type[1].endsWith('_total')).toBe(type[2] === 'counter')
        declared.push(type[1])
      } else if (line.startsWith('#')) {
        expect(line).toMatch(/^# HELP sluice_[a-z_]+ [A-Z1].*\.$/)
      } else {
        const parts = /^(sluice_[a-z_]+)(\{[a-z_]+="[^"\n]*"(,[a-z_]+="[^"\n]*")*\})? \d+(\.\d+)?$/.exec(line)
        expect(parts, line).not.toBeNull()
        expect(declared.at(-1)).toBe(parts?.[1])
      }
    }
    expect(text).not.toContain('secret-key')
  })

  it('ADX-2 values are those of the snapshot, in base units', () => {
    const clock = new ManualClock()
    const core = new AdmissionCore({
      clock,
      config: { global: { concurrency: 1, rate }, queue: { maxQueuedCalls: 1, maxQueuedBytes: 100 } },
    })
    core.admit()
    core.admit({ bytes: 70 })
    core.admit({ bytes: 1 })
    clock.advance(250)
    const text = metricsText(core.snapshot())
    expect(sample(text, 'sluice_requests_total{result="admitted"}')).toBe(1)
    expect(sample(text, 'sluice_requests_total{result="rejected",reason="queue_calls"}')).toBe(1)
    expect(sample(text, 'sluice_requests_total{result="expired",reason="queue_timeout"}')).toBe(0)
    expect(sample(text, 'sluice_requests_total{result="cancelled",reason="aborted"}')).toBe(0)
    expect(sample(text, 'sluice_requests_queued_total')).toBe(1)
    expect(sample(text, 'sluice_running_requests')).toBe(1)
    expect(sample(text, 'sluice_active_requests{scope="global"}')).toBe(1)
    expect(sample(text, 'sluice_waiting_requests{scope="global"}')).toBe(1)
    expect(sample(text, 'sluice_limit{scope="global",kind="concurrency"}')).toBe(1)
    expect(sample(text, 'sluice_limit{scope="global",kind="rate"}')).toBe(50)
    expect(sample(text, 'sluice_rate_remaining{scope="global"}')).toBe(49)
    expect(sample(text, 'sluice_rate_window_seconds{scope="global"}')).toBe(1.5)
    expect(sample(text, 'sluice_queue_requests')).toBe(1)
    expect(sample(text, 'sluice_queue_size_bytes')).toBe(70)
    expect(sample(text, 'sluice_queue_oldest_wait_seconds')).toBe(0.25)
    expect(sample(text, 'sluice_config_version')).toBe(1)
    expect(sample(text, 'sluice_live_generations')).toBe(1)
    expect(sample(text, 'sluice_state{state="enabled"}')).toBe(1)
    expect(sample(text, 'sluice_state{state="disabled"}')).toBe(0)
    expect(sample(text, 'sluice_draining')).toBe(0)
  })

  it('ADX-2 keys are counted and never named, with the bounds beside the counts', () => {
    const core = new AdmissionCore({
      clock: new ManualClock(),
      config: { global: { partitions: { tenant: { concurrency: 2, maxPartitions: 7 } } } },
      selectors: { tenant: () => undefined },
    })
    for (const key of ['alice', 'bob', 'bob']) core.admit({ keys: { tenant: key } })
    const text = metricsText(core.snapshot())
    expect(sample(text, 'sluice_keys{scope="global#tenant"}')).toBe(2)
    expect(sample(text, 'sluice_active_requests{scope="global#tenant"}')).toBe(3)
    expect(sample(text, 'sluice_limit{scope="global#tenant",kind="key_concurrency"}')).toBe(2)
    expect(sample(text, 'sluice_limit{scope="global#tenant",kind="keys"}')).toBe(7)
    expect(text).not.toMatch(/alice|bob/)
  })

  it('ADX-2 label values are escaped', () => {
    const core = new AdmissionCore({
      clock: new ManualClock(),
      config: { contracts: { '/"q"\\\n': { concurrency: 1 } } },
    })
    expect(metricsText(core.snapshot())).toContain('sluice_active_requests{scope="contract:/\\"q\\"\\\\\\n"} 0\n')
  })

  it('ADX-2 a family without samples is left out, and nothing while disabled is invalid', () => {
    const text = metricsText(new AdmissionCore({ clock: new ManualClock() }).snapshot())
    expect(text).not.toContain('sluice_limit')
    expect(sample(text, 'sluice_state{state="disabled"}')).toBe(1)
    expect(sample(text, 'sluice_config_version')).toBe(0)
  })
})
