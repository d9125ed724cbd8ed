/**
 * A gateway in front of several instances: a registry of upstreams, a selection that never yields one that is
 * draining, a proxy on Hono's helper, and what an instance says of itself.
 *
 * @example
 * ```ts
 * import { Hono } from 'hono'
 * import { createGateway } from '@sluice/admission/gateway'
 *
 * const gateway = createGateway({ algorithm: 'least-active', probes: { path: '/readyz' } })
 * const app = new Hono()
 * app.route('/gateway', gateway.registry({ tokens: [env.GATEWAY_TOKEN] }))
 * app.all('*', gateway.proxy())
 * gateway.start()
 * export default app
 * ```
 *
 * @module
 */
export type { Clock } from './clock.ts'
export type { ConfigIssue } from './errors.ts'
export { type AnnounceOptions, type Announcer, announceInstance, type GatewayReport } from './gateway/announce.ts'
export { classifyFetchFailure, type FetchFailure } from './gateway/connect-errors.ts'
export {
  createGateway,
  type Gateway,
  type GatewayOptions,
  type ProbeOptions,
  type UpstreamPool,
} from './gateway/create-gateway.ts'
export { GatewayInputError, UpstreamConflictError, type UpstreamRule, UpstreamRuleError } from './gateway/errors.ts'
export { DeadlineError, type Fetch } from './gateway/fetch.ts'
export type { AnnouncementFailure, Backoff, Told } from './gateway/gateway-link.ts'
export type { GatewayEnv, ProxyFailure, ProxyOptions } from './gateway/proxy-handler.ts'
export type { ForwardingOptions } from './gateway/proxy-request.ts'
export { RegistryClient, type RegistryClientOptions, RegistryError } from './gateway/registry-client.ts'
export type { RegistryOptions } from './gateway/registry-route.ts'
export type { Algorithm, UnavailableReason } from './gateway/selection.ts'
export type { DrainingMarker, Health, LastProbe, Upstream } from './gateway/upstream.ts'
export type {
  DrainingEvent,
  HeartbeatEvent,
  OfflineEvent,
  RegisterEvent,
  UpstreamEvent,
  UpstreamInput,
  UpstreamProps,
  UpstreamSettings,
} from './gateway/upstream-events.ts'
export type { UpstreamLists, UpstreamView } from './gateway/upstream-lists.ts'
export type { AppliedEvent, EventsAnswer } from './gateway/upstreams.ts'
