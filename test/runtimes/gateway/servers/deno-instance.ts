import { serveWithAdmission } from '../../../../src/host/deno.ts'
import { runInstance } from '../instance.ts'

await runInstance(serveWithAdmission, (server) => server.shutdown())
