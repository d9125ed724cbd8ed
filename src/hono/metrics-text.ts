import type { Snapshot } from '../control/snapshot.ts'
import type { RefusalReason } from '../refusal.ts'

/** Media type of the Prometheus text format. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** How monitoring sees a refusal: the server would not, the time was up, or the caller went away. */
const RESULTS: { readonly [R in RefusalReason]: 'rejected' | 'expired' | 'cancelled' } = {
  concurrency: 'rejected',
  rate: 'rejected',
  partition_concurrency: 'rejected',
  partition_rate: 'rejected',
  partition_limit: 'rejected',
  queue_calls: 'rejected',
  queue_bytes: 'rejected',
  queue_timeout: 'expired',
  one_way: 'rejected',
  delivery: 'rejected',
  draining: 'rejected',
  stopped: 'rejected',
  aborted: 'cancelled',
}

interface Sample {
  readonly labels?: { readonly [name: string]: string }
  readonly value: number
}

function labelValue(value: string): string {
  return value.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`))
}

function line(name: string, { labels, value }: Sample): string {
  if (labels === undefined) return `${name} ${value}\n`
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${labelValue(text)}"`)
  return `${name}{${pairs.join(',')}} ${value}\n`
}

/** One family: its help and type once, then its samples; nothing at all without a sample. */
function family(name: string, type: 'counter' | 'gauge', help: string, samples: readonly Sample[]): string {
  if (samples.length === 0) return ''
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${samples.map((sample) => line(name, sample)).join('')}`
}

function requests({ admitted, refused }: Snapshot['totals']): readonly Sample[] {
  const samples: Sample[] = [{ labels: { result: 'admitted' }, value: admitted }]
  const results: ReadonlyMap<string, string> = new Map(Object.entries(RESULTS))
  for (const [reason, value] of Object.entries(refused)) {
    samples.push({ labels: { result: results.get(reason) ?? 'rejected', reason }, value })
  }
  return samples
}

/**
 * A snapshot in the Prometheus text format 0.0.4. Base units: seconds, bytes, requests. A limit and what is in use of it
 * share their labels, so that one can be divided by the other. Keys of partitions are counted and never named: labels
 * are bounded by the configuration.
 */
export function metricsText(snapshot: Snapshot): string {
  const { queued, scopes, totals } = snapshot
  // Labels name scopes, so of several definitions that a scope has had only the current one may be shown.
  const rates = snapshot.rates.filter(isCurrent)
  const partitions = snapshot.partitions.filter(isCurrent)
  const deliveries = snapshot.deliveries.filter(isCurrent)
  const pools = partitions.filter((pool) => pool.limit !== null)
  return [
    family('sluice_requests_total', 'counter', 'Answers of admission, by result and reason.', requests(totals)),
    family('sluice_requests_queued_total', 'counter', 'Requests that had to wait.', [{ value: totals.queued }]),
    family('sluice_running_requests', 'gauge', 'Requests that run now, with or without limits.', [
      { value: snapshot.active },
    ]),
    family('sluice_active_requests', 'gauge', 'Requests that hold a permit of the scope.', [
      ...scopes.map(({ scope, active }) => ({ labels: { scope }, value: active })),
      ...partitions.map(({ scope, active }) => ({ labels: { scope }, value: active })),
    ]),
    family('sluice_waiting_requests', 'gauge', 'Waiting requests that need the scope.', [
      ...scopes.map(({ scope, waiting }) => ({ labels: { scope }, value: waiting })),
      ...partitions.map(({ scope, waiting }) => ({ labels: { scope }, value: waiting })),
    ]),
    family('sluice_limit', 'gauge', 'The limit of the scope; of one key where the kind is per key.', [
      ...scopes.map(({ scope, limit }) => ({ labels: { scope, kind: 'concurrency' }, value: limit })),
      ...rates.map(({ scope, limit }) => ({ labels: { scope, kind: 'rate' }, value: limit })),
      ...pools.map(({ scope, limit }) => ({ labels: { scope, kind: 'key_concurrency' }, value: limit ?? 0 })),
      ...partitions.map(({ scope, maxPartitions }) => ({ labels: { scope, kind: 'keys' }, value: maxPartitions })),
      ...deliveries.map((entry) => ({
        labels: { scope: entry.scope, kind: 'key_open_bodies' },
        value: entry.maxOpenBodies,
      })),
    ]),
    family(
      'sluice_open_bodies',
      'gauge',
      'Streamed response bodies that are still open.',
      deliveries.map((entry) => ({ labels: { scope: entry.scope }, value: entry.openBodies })),
    ),
    family(
      'sluice_rate_remaining',
      'gauge',
      'Requests that the rate of the scope would admit now.',
      rates.map(({ scope, remaining }) => ({ labels: { scope }, value: remaining })),
    ),
    family(
      'sluice_rate_window_seconds',
      'gauge',
      'The time over which the rate of the scope counts.',
      rates.map(({ scope, windowMs }) => ({ labels: { scope }, value: windowMs / 1000 })),
    ),
    family(
      'sluice_keys',
      'gauge',
      'Keys that the scope tells apart now.',
      partitions.map((pool) => ({ labels: { scope: pool.scope }, value: pool.partitions })),
    ),
    family('sluice_queue_requests', 'gauge', 'Requests in the queue.', [{ value: queued.calls }]),
    family('sluice_queue_size_bytes', 'gauge', 'Bytes that the requests in the queue declare.', [
      { value: queued.bytes },
    ]),
    family('sluice_queue_oldest_wait_seconds', 'gauge', 'How long the oldest request in the queue waits.', [
      { value: queued.oldestWaitMs / 1000 },
    ]),
    family('sluice_config_version', 'gauge', 'Generation last published.', [{ value: snapshot.generation }]),
    family('sluice_live_generations', 'gauge', 'Generations that are current or still have requests.', [
      { value: snapshot.generations.length },
    ]),
    family(
      'sluice_state',
      'gauge',
      '1 for the state that admission is in.',
      (['disabled', 'enabled', 'stopped'] as const).map((state) => ({
        labels: { state },
        value: state === snapshot.state ? 1 : 0,
      })),
    ),
    family('sluice_draining', 'gauge', '1 while this instance announces or drains.', [
      { value: snapshot.draining ? 1 : 0 },
    ]),
  ].join('')
}

function isCurrent({ current }: { readonly current: boolean }): boolean {
  return current
}
