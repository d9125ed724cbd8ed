import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { ROOT } from '../support/source.ts'

const TIMEOUT_MS = 300_000 // a minute where nothing else runs

it(
  'ADM-2 every case of the benchmark does what it says, within its bytes, clock readings and timers',
  async () => {
    const run = promisify(execFile)('npm', ['run', '--silent', 'bench', '--', '--quick'], { cwd: ROOT })
    // What the run says is broken is the message of a test that fails.
    const { stdout, stderr } = await run
    expect(stderr).toBe('')
    expect(stdout).toContain('### Goals')
  },
  TIMEOUT_MS,
)
