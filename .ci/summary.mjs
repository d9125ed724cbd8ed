// Prints `N passed, N failed` from vitest's JSON report. Fails without a report, without tests, or with a failure.
import { readFileSync } from 'node:fs'

let [passed, failed, brokenFiles] = [0, 0, 0]
try {
  const report = JSON.parse(readFileSync(process.argv[2], 'utf8'))
  passed = report.numPassedTests
  // A file that cannot be loaded has no tests that could fail; it counts as one.
  brokenFiles = report.testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  ).length
  failed = report.numFailedTests + brokenFiles
  if (!report.success && failed === 0) failed = 1
} catch (error) {
  console.error(`No test report: ${error.message}`)
  failed = 1
}
if (passed === 0 && failed === 0) failed = 1
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)
