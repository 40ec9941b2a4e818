// Runs vitest, names what failed, and closes with the plain line that every test step ends
// with. At most three failed tests run once more, in their files alone. A test that passes
// then is named as flaky, as `tally` does it for the tests of Go.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'

const root = new URL('..', import.meta.url).pathname
const bin = join(root, 'node_modules/vitest/vitest.mjs')
const most = 3

// vitest returns the counts of a run and its failed tests as {file, name, why}.
function vitest(args) {
  const dir = mkdtempSync(join(tmpdir(), 'carillon-vitest-'))
  const report = join(dir, 'report.json')
  const run = spawnSync(process.execPath, [bin, 'run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, ...args], {
    stdio: 'inherit',
    cwd: root,
  })
  try {
    return { ...read(JSON.parse(readFileSync(report, 'utf8'))), sound: run.status === 0 }
  } catch (err) {
    return { passed: 0, sound: false, failed: [{ name: 'vitest', why: `read its report: ${err.message}` }] }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

function read(result) {
  const failed = []
  for (const { name, message, assertionResults } of result.testResults) {
    const file = relative(root, name)
    const tests = assertionResults.filter((a) => a.status === 'failed')
    failed.push(...tests.map((a) => ({ file, name: `${file} ${a.fullName}`, why: a.failureMessages.join('\n') })))
    // A file that does not load has no tests, yet it failed.
    if (message && tests.length === 0) failed.push({ file, name: file, why: message })
  }
  // An error outside of each test.
  if (!result.success && failed.length === 0) failed.push({ name: 'vitest', why: 'an error outside of the tests; see above' })
  return { passed: result.numPassedTests, failed }
}

const { passed, sound, failed } = vitest(process.argv.slice(2))
let final = failed
if (failed.length > 0 && failed.length <= most && failed.every((f) => f.file)) {
  const second = vitest([...new Set(failed.map((f) => f.file))])
  if (second.sound) final = []
}
for (const { name, why } of failed) {
  console.log(`${final.length > 0 ? 'failed' : 'flaky'}: ${name}`)
  for (const line of why.split('\n').slice(0, 4)) console.log(`    ${line}`)
}
const green = passed + failed.length - final.length
console.log(`${green} passed, ${final.length} failed`)
process.exitCode = (sound || failed.length > 0) && final.length === 0 && green > 0 ? 0 : 1
