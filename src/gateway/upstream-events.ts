import * as v from 'valibot'
import { MAX_TIMER_MS } from '../clock.ts'
import type { ConfigIssue } from '../errors.ts'
import { pointerStep } from '../json-pointer.ts'
import { GatewayInputError } from './errors.ts'
import { parseUpstreamUrl } from './upstream-url.ts'

/** Free-form data about an upstream, as JSON; at most {@link MAX_PROPS_CHARACTERS} long. */
export type UpstreamProps = { readonly [name: string]: unknown }

/** What may be said about an upstream besides where it is; each replaces the whole former value. */
export interface UpstreamSettings {
  /** Share of the traffic relative to the others, 1 to 10 000; default 1. */
  readonly weight?: number
  /** For how long after a fresh register the weight ramps up. Milliseconds; default is the gateway's. */
  readonly warmupMs?: number
  readonly labels?: { readonly [name: string]: string }
  readonly props?: UpstreamProps
}

/** "I am here and fresh": the only event that creates an upstream, revives a lease or clears the draining marker. */
export interface RegisterEvent extends UpstreamSettings {
  readonly type: 'register'
  readonly id: string
  /** Absolute http or https URL; a path is a prefix for every request. */
  readonly url: string
  /** Grows with every start of the process behind an id; absent: that of the upstream it finds, else 0. */
  readonly generation?: number
}

/** "I am still here": extends the lease; what it says about settings is taken over, the marker is not touched. */
export interface HeartbeatEvent extends UpstreamSettings {
  readonly type: 'heartbeat'
  readonly id: string
  readonly generation?: number
}

/** "Send me nothing new". Idempotent: the first `reason` stays. Of a generation that never registered it drains nobody. */
export interface DrainingEvent {
  readonly type: 'draining'
  readonly id: string
  readonly generation?: number
  readonly reason?: string
}

/** "I am gone". Idempotent: an unknown id, and a generation that never registered, change nothing. */
export interface OfflineEvent {
  readonly type: 'offline'
  readonly id: string
  readonly generation?: number
}

export type UpstreamEvent = RegisterEvent | HeartbeatEvent | DrainingEvent | OfflineEvent

/** One upstream of a complete set (`sync`). */
export interface UpstreamInput extends UpstreamSettings {
  readonly id: string
  readonly url: string
  readonly generation?: number
  /** The marker; absent or false clears it. `props.draining`, a boolean or its text, says the same (GWY-2). */
  readonly draining?: boolean | { readonly reason?: string }
}

/** Upper bounds; the whole registry stays within them whatever a client sends. */
export const MAX_ID_CHARACTERS = 200
export const MAX_WEIGHT = 10_000
export const MAX_LABELS = 64
export const MAX_PROPS_CHARACTERS = 8192

const id = v.pipe(
  v.string(),
  v.maxLength(MAX_ID_CHARACTERS),
  v.regex(/^[\x21-\x7e]+$/, 'must be one or more visible ASCII characters'),
)
const url = v.pipe(
  v.string(),
  v.maxLength(2048),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const parsed = parseUpstreamUrl(dataset.value)
    if (parsed.kind === 'base') return parsed.base
    addIssue({ message: parsed.why })
    return NEVER
  }),
)
const generation = v.pipe(v.number(), v.safeInteger(), v.minValue(0))
const reason = v.pipe(v.string(), v.maxLength(500))
const isRecord = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
// valibot's record leaves out names such as `constructor`; here they are ordinary ones (CFG-2).
const labels = v.pipe(
  v.custom<{ readonly [name: string]: string }>(
    (value) =>
      isRecord(value) && Object.values(value).every((label) => typeof label === 'string' && label.length <= 500),
    'must be an object of texts of at most 500 characters',
  ),
  v.check((value) => Object.keys(value).length <= MAX_LABELS, `must have at most ${MAX_LABELS} names`),
  v.transform((value) => Object.freeze(Object.fromEntries(Object.entries(value)))),
)
const props = v.pipe(
  v.custom<UpstreamProps>(isRecord, 'must be an object'),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const copy = jsonCopy(dataset.value)
    if (copy !== undefined) return Object.freeze(copy)
    addIssue({ message: `must be JSON of at most ${MAX_PROPS_CHARACTERS} characters` })
    return NEVER
  }),
)
const settings = {
  weight: v.exactOptional(v.pipe(v.number(), v.safeInteger(), v.minValue(1), v.maxValue(MAX_WEIGHT))),
  warmupMs: v.exactOptional(v.pipe(v.number(), v.safeInteger(), v.minValue(0), v.maxValue(MAX_TIMER_MS))),
  labels: v.exactOptional(labels),
  props: v.exactOptional(props),
}
const whose = { id, generation: v.exactOptional(generation) }

const eventSchema: v.GenericSchema<unknown, UpstreamEvent> = v.variant('type', [
  v.strictObject({ type: v.literal('register'), ...whose, url, ...settings }),
  v.strictObject({ type: v.literal('heartbeat'), ...whose, ...settings }),
  v.strictObject({ type: v.literal('draining'), ...whose, reason: v.exactOptional(reason) }),
  v.strictObject({ type: v.literal('offline'), ...whose }),
])

const inputSchema: v.GenericSchema<unknown, UpstreamInput> = v.pipe(
  v.strictObject({
    ...whose,
    url,
    ...settings,
    draining: v.exactOptional(v.union([v.boolean(), v.strictObject({ reason: v.exactOptional(reason) })])),
  }),
  v.rawTransform(({ dataset, addIssue, NEVER }): UpstreamInput => {
    const { value } = dataset
    if (value.props === undefined || !Object.hasOwn(value.props, 'draining')) return value
    const { draining: marker, ...rest } = value.props
    // A marker that is misspelled must not select a draining upstream in silence.
    if (!isMarkerText(marker)) {
      addIssue({ message: 'props.draining must be true or false' })
      return NEVER
    }
    // The marker lives in its own field only: kept in props too, it would come back with the next sync of what was read.
    const isSet = marker === true || marker === 'true'
    return {
      ...value,
      props: Object.freeze(rest),
      draining: isSet ? value.draining || true : (value.draining ?? false),
    }
  }),
)

/**
 * Reads a batch of events. All or nothing.
 *
 * @throws {GatewayInputError} when any event is malformed, with every issue.
 */
export function parseEvents(input: unknown): readonly UpstreamEvent[] {
  return parse('events', v.pipe(v.array(eventSchema), v.minLength(1)), input)
}

/**
 * Reads a complete set of upstreams; ids are unique in it.
 *
 * @throws {GatewayInputError} when any upstream is malformed, with every issue.
 */
export function parseUpstreams(input: unknown): readonly UpstreamInput[] {
  const inputs = parse('upstreams', v.array(inputSchema), input)
  const seen = new Set<string>()
  const issues: ConfigIssue[] = []
  for (const [index, { id }] of inputs.entries()) {
    if (seen.has(id)) issues.push({ pointer: `/upstreams/${index}/id`, message: `"${id}" is already in the set` })
    seen.add(id)
  }
  if (issues.length > 0) throw new GatewayInputError('upstreams', issues)
  return inputs
}

function parse<Output>(subject: string, schema: v.GenericSchema<unknown, Output>, input: unknown): Output {
  const result = v.safeParse(schema, input)
  if (result.success) return result.output
  const issues = result.issues.map((issue) => ({
    pointer: pointerTo([subject, ...(issue.path?.map((step) => String(step.key)) ?? [])]),
    message: issue.message,
  }))
  const unknownType = subject === 'events' && issues.some(({ pointer }) => /^\/events\/\d+\/type$/.test(pointer))
  throw new GatewayInputError(subject, issues, unknownType)
}

function pointerTo(steps: readonly string[]): string {
  return steps.map(pointerStep).join('')
}

function jsonCopy(value: UpstreamProps): UpstreamProps | undefined {
  try {
    const text = JSON.stringify(value)
    if (text.length > MAX_PROPS_CHARACTERS) return undefined
    const copy: unknown = JSON.parse(text)
    return isRecord(copy) ? copy : undefined
  } catch {
    return undefined // a cycle, a bigint: no JSON
  }
}

function isMarkerText(value: unknown): boolean {
  return typeof value === 'boolean' || value === 'true' || value === 'false'
}
