// Runs the browser tests and closes with the plain line that every test step ends with.
// The files to run are arguments. Without any, smoke.mjs and apart.mjs run at once. With
// CARILLON_E2E_URL, smoke.mjs goes against that server. Without it, this script starts
// `CARILLON_BIN demo` (default ../bin/carillon) on free ports with a new data folder,
// and stops it afterwards. With CARILLON_E2E_PATH, such as /carillon, that server is behind
// a proxy that has it at this path and nothing elsewhere. After --alone come files that start
// their own servers: nothing is started for them.
import { spawn } from 'node:child_process'
import { startDemo } from '../e2e/demo.mjs'
import { startSubpath } from '../e2e/subpath.mjs'

const root = new URL('..', import.meta.url).pathname
const args = process.argv.slice(2)
const alone = args[0] === '--alone'
const files = args.length > 0 ? args.slice(alone ? 1 : 0) : ['e2e/smoke.mjs', 'e2e/apart.mjs']

function runTests(env) {
  const child = spawn(process.execPath, ['--test', '--test-concurrency=2', '--test-reporter=spec', ...files], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...env, ...process.env },
  })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
    process.stdout.write(chunk)
  })
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, output })))
}

let demo
let proxy
let result
try {
  if (!process.env.CARILLON_E2E_URL && process.env.CARILLON_E2E_PATH) proxy = await startSubpath(process.env.CARILLON_E2E_PATH)
  demo = alone || process.env.CARILLON_E2E_URL ? undefined : await startDemo({ base: proxy?.url })
  proxy?.to(demo.url)
  // A handler that logs while it runs, and obeys a cancel.
  result = await runTests(demo ? { CARILLON_E2E_URL: proxy?.url ?? demo.url, CARILLON_E2E_PASSWORD: demo.password, CARILLON_E2E_USER: 'admin', CARILLON_E2E_EXECUTOR: 'sample-shop', CARILLON_E2E_HANDLER: 'export-archive' } : {})
} catch (err) {
  console.error(err.message)
  result = { code: 1, output: '' }
} finally {
  proxy?.stop()
  await demo?.stop()
}
const count = (word) => Number(new RegExp(`^\\S* ?${word} (\\d+)$`, 'm').exec(result.output)?.[1] ?? 0)
const passed = count('pass')
const left = proxy?.left ?? []
if (left.length > 0) console.error(`asked for outside of ${process.env.CARILLON_E2E_PATH}:\n${left.join('\n')}`)
const failed = count('fail') + count('cancelled') + left.length || (result.code === 0 && passed > 0 ? 0 : 1)
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
