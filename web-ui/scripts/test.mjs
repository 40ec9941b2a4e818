// Runs vitest and closes with the plain line that every test step ends with.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const dir = mkdtempSync(join(tmpdir(), 'carillon-vitest-'))
const report = join(dir, 'report.json')
const bin = new URL('../node_modules/vitest/vitest.mjs', import.meta.url).pathname
const run = spawnSync(
  process.execPath,
  [bin, 'run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, ...process.argv.slice(2)],
  { stdio: 'inherit', cwd: new URL('..', import.meta.url).pathname },
)
let passed = 0
let failed = 1
try {
  const result = JSON.parse(readFileSync(report, 'utf8'))
  passed = result.numPassedTests
  failed = result.numFailedTests
  // A file that does not load has no tests, yet it failed.
  if (!result.success && failed === 0) failed = 1
} catch (err) {
  console.error('read vitest report:', err.message)
}
rmSync(dir, { recursive: true, force: true })
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = run.status === 0 && failed === 0 && passed > 0 ? 0 : 1
