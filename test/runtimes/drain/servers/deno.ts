import { serveWithAdmission } from '../../../../src/host/deno.ts'
import { runDrillServer } from '../drill-server.ts'

await runDrillServer(serveWithAdmission)
