// Runs the browser smoke test and closes with the plain line that every test
// step ends with. With CARILLON_E2E_URL it goes against that server; else it
// starts `CARILLON_BIN demo` (default ../bin/carillon) on free ports with a
// new data folder, and stops it afterwards.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = new URL('..', import.meta.url).pathname
const START_MS = 60_000
const STOP_MS = 30_000

/** Starts the demo; resolves to its address, login and a way to stop it. */
async function startDemo() {
  const data = mkdtempSync(join(tmpdir(), 'carillon-e2e-'))
  const bin = process.env.CARILLON_BIN ?? join(root, '../bin/carillon')
  const child = spawn(bin, ['demo', '--data', data, '--http', '127.0.0.1:0', '--executors', '127.0.0.1:0', '--log-level', 'info'], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  const ended = new Promise((resolve) => child.once('close', resolve))
  const demo = {
    get output() {
      return output
    },
    async stop() {
      child.kill('SIGINT')
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
      await ended
      clearTimeout(timer)
      rmSync(data, { recursive: true, force: true })
    },
  }
  const ready = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the demo did not become ready')), START_MS)
    const read = (chunk) => {
      output += chunk
      const url = /web UI +(\S+)/.exec(output)?.[1]
      const password = /password +(\S+)/.exec(output)?.[1]
      // Its jobs are declared only when the sample shop has registered.
      if (!url || !password || !/executor joined/.test(output)) return
      clearTimeout(timer)
      resolve({ CARILLON_E2E_URL: url, CARILLON_E2E_PASSWORD: password })
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    child.once('error', reject)
    void ended.then((code) => reject(new Error(`the demo ended with code ${code}`)))
  })
  try {
    // A handler that logs while it runs, and obeys a cancel.
    return { ...demo, env: { CARILLON_E2E_USER: 'admin', CARILLON_E2E_HANDLER: 'export-archive', ...(await ready) } }
  } catch (err) {
    console.error(output)
    await demo.stop()
    throw err
  }
}

function runSmoke(env) {
  const child = spawn(process.execPath, ['--test', '--test-reporter=spec', 'e2e/smoke.mjs'], {
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
let result
try {
  demo = process.env.CARILLON_E2E_URL ? undefined : await startDemo()
  result = await runSmoke(demo?.env ?? {})
} catch (err) {
  console.error(err.message)
  result = { code: 1, output: '' }
} finally {
  await demo?.stop()
}
const count = (word) => Number(new RegExp(`^\\S* ?${word} (\\d+)$`, 'm').exec(result.output)?.[1] ?? 0)
const passed = count('pass')
const failed = count('fail') + count('cancelled') || (result.code === 0 && passed > 0 ? 0 : 1)
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
