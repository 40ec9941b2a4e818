// Runs the browser smoke test and closes with the plain line that every test
// step ends with. Settings: see e2e/smoke.mjs.
import { spawnSync } from 'node:child_process'

const run = spawnSync(process.execPath, ['--test', '--test-reporter=spec', 'e2e/smoke.mjs'], {
  cwd: new URL('..', import.meta.url).pathname,
  encoding: 'utf8',
  stdio: ['inherit', 'pipe', 'inherit'],
  maxBuffer: 64 << 20,
})
process.stdout.write(run.stdout)
const count = (word) => Number(new RegExp(`^\\S* ?${word} (\\d+)$`, 'm').exec(run.stdout)?.[1] ?? 0)
const passed = count('pass')
const failed = count('fail') + count('cancelled')
console.log(`${passed} passed, ${failed || (run.status === 0 ? 0 : 1)} failed`)
process.exitCode = run.status === 0 && passed > 0 ? 0 : 1
