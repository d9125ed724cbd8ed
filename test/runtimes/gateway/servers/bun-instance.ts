import { serveWithAdmission } from '../../../../src/host/bun.ts'
import { runInstance } from '../instance.ts'

await runInstance(serveWithAdmission, (server) => server.stop())
