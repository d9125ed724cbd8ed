import { serveWithAdmission } from '../../../../src/host/node.ts'
import { runInstance } from '../instance.ts'

await runInstance(
  serveWithAdmission,
  (server) =>
    new Promise((resolve) => {
      server.close(() => resolve())
    }),
)
