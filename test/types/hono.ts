/** Compiled, never run: what the compiler must know of the Hono surface. */
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { testClient } from 'hono/testing'
import { expectTypeOf } from 'vitest'
import {
  type Admission,
  type AdmissionInfo,
  type AdmissionOptions,
  type AdmissionVariables,
  type ConfigInput,
  clientAddress,
  createAdmission,
  type PublishEvent,
  type Refusal,
} from '../../mod.ts'

interface AppEnv {
  Bindings: { ADMIN_TOKEN: string }
  Variables: { user: { id: string } } & AdmissionVariables
}

// Selectors, identify, isOneWay and onRefuse see the app's own environment.
const admission = createAdmission<AppEnv>({
  selectors: {
    user: (c) => {
      expectTypeOf(c.var.user).toEqualTypeOf<{ id: string }>()
      expectTypeOf(c.env.ADMIN_TOKEN).toEqualTypeOf<string>()
      return c.var.user.id
    },
    client: clientAddress({ getConnInfo: () => ({ remote: {} }) }),
    // @ts-expect-error a key is a string or undefined
    wrong: () => 7,
    // @ts-expect-error a selector is synchronous
    late: async () => 'key',
  },
  identify: (c) => ({ contract: c.var.user.id }),
  isOneWay: (c) => c.env.ADMIN_TOKEN === '',
  onRefuse: (c, refusal) => {
    expectTypeOf(c).toEqualTypeOf<Context<AppEnv>>()
    expectTypeOf(refusal).toEqualTypeOf<Refusal>()
    return c.json({ reason: refusal.reason }, 503)
  },
  onPublish: (event) => expectTypeOf(event).toEqualTypeOf<PublishEvent>(),
})
// @ts-expect-error an unknown option is an error
createAdmission({ onpublish: () => {} })
createAdmission({ onPublish: (event) => [event].push(event) })

// c.var.admission is typed wherever the middleware or its Variables are named.
expectTypeOf(admission).toEqualTypeOf<Admission>()
expectTypeOf(admission.middleware()).toEqualTypeOf<MiddlewareHandler<{ Variables: AdmissionVariables }>>()
new Hono<AppEnv>().use(admission.middleware()).get('/', (c) => {
  expectTypeOf(c.var.admission).toEqualTypeOf<AdmissionInfo | undefined>()
  expectTypeOf(c.get('admission')?.scopes).toEqualTypeOf<readonly string[] | undefined>()
  expectTypeOf(c.var.user.id).toEqualTypeOf<string>()
  return c.text('')
})
new Hono().use(admission.middleware()).get('/', (c) => {
  expectTypeOf(c.var.admission).toEqualTypeOf<AdmissionInfo | undefined>()
  return c.text('')
})
new Hono().get('/x/:id', admission.middleware(), (c) => {
  expectTypeOf(c.var.admission).toEqualTypeOf<AdmissionInfo | undefined>()
  expectTypeOf(c.req.param('id')).toEqualTypeOf<string>()
  return c.text('')
})

// Mounting any of it keeps the app's own routes typed.
const app = new Hono()
  .use('*', admission.middleware())
  .route('/admission', admission.admin({ verify: async (token, c) => (token === c.env.T ? 'read' : false) }))
  .route('/', admission.health())
  .get('/typed', (c) => c.json({ n: 1 }))
expectTypeOf(testClient(app).typed.$get).toBeFunction()

// Without a type argument the options need none.
createAdmission()
createAdmission({ config: { global: { concurrency: 1 } }, rateLimitHeaders: 'list-r-t' })
createAdmission({ selectors: { tenant: (c) => c.req.header('x-tenant') } })

const badConfig: ConfigInput = {
  // @ts-expect-error a misspelt setting is an error
  global: { concurency: 1 },
}
const badHeaders: AdmissionOptions = {
  // @ts-expect-error the shape is named
  rateLimitHeaders: 'draft-8',
}
void [badConfig, badHeaders]

// @ts-expect-error the admin route is never without options
admission.admin()
admission.admin({
  // @ts-expect-error there are two roles
  tokens: { admin: ['t'] },
})
