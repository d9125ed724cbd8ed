import { serveWithAdmission } from '../../../../src/host/bun.ts'
import { runDrillServer } from '../drill-server.ts'

await runDrillServer(serveWithAdmission)
