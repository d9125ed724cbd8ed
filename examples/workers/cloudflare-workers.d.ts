/** What the examples use of `cloudflare:workers`. With `@cloudflare/workers-types` in your project, leave this file out. */
declare module 'cloudflare:workers' {
  export const env: { readonly ADMIN_TOKEN: string }
  export class DurableObject {}
  export class RpcTarget {}
}
