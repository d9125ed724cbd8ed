import { serveWithAdmission } from '../../../../src/host/node.ts'
import { runDrillServer } from '../drill-server.ts'

await runDrillServer(serveWithAdmission)
