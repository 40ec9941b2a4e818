// The real processes: `carillon demo` (an admin and the sample shop), and an
// admin alone that goes on with its data after the first one was killed.
import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const START_MS = 60_000
const STOP_MS = 30_000
const bin = process.env.CARILLON_BIN ?? new URL('../../bin/carillon', import.meta.url).pathname

/** A port of the loopback that nothing uses now. */
export const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })

/** Starts a process; resolves to it and to what `find` finds in its output. */
async function launch(args, find, env = {}) {
  const child = spawn(bin, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } })
  let output = ''
  // Not its pipes' end: the application has them too, and outlives it.
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const found = await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${args[0]} did not become ready:\n${output}`)), START_MS)
    const read = (chunk) => {
      output += chunk
      const what = find(output)
      if (!what) return
      clearTimeout(timer)
      resolve(what)
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    child.once('error', reject)
    void ended.then(() => clearTimeout(timer))
    void ended.then((code) => reject(new Error(`${args[0]} ended with code ${code}:\n${output}`)))
  }).catch((err) => {
    child.kill('SIGKILL')
    throw err
  })
  return { child, ended, found, output: () => output }
}

/** Sends a signal to a process that is not our child; whether it was there. */
function signal(pid, name) {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}

/** The processes that any thread of a process has started. */
function childrenOf(pid) {
  const threads = readdirSync(`/proc/${pid}/task`)
  return threads.flatMap((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number))
}

/** Starts the demo with a new data folder. Ports are free ones unless they are named. base is what people open, env further variables. */
export async function startDemo({ http = 0, executors = 0, base = '', env = {} } = {}) {
  const data = mkdtempSync(join(tmpdir(), 'carillon-e2e-'))
  const flags = ['--data', data, '--http', `127.0.0.1:${http}`, '--executors', `127.0.0.1:${executors}`, '--log-level', 'info', ...(base ? ['--base-url', base] : [])]
  const demo = await launch(['demo', ...flags], (output) => {
    const url = /web UI +(\S+)/.exec(output)?.[1]
    const password = /password +(\S+)/.exec(output)?.[1]
    // Its jobs are declared only when the sample shop has registered.
    return url && password && /executor joined/.test(output) ? { url, password } : undefined
  }, env)
  let admin = demo
  const [shop] = childrenOf(demo.child.pid)
  return {
    ...demo.found,
    get output() {
      return admin.output()
    },
    /** The process of the application; it outlives an admin that is killed. */
    shop,
    /** Sends a signal to the admin. */
    signal: (name) => admin.child.kill(name),
    async kill() {
      admin.child.kill('SIGKILL')
      await admin.ended
    },
    /** An admin alone, on the same data and ports. */
    async restart() {
      admin = await launch(['server', ...flags], (output) => output.includes('admin node serves'))
    },
    async stop() {
      admin.child.kill('SIGCONT')
      admin.child.kill('SIGINT')
      const timer = setTimeout(() => admin.child.kill('SIGKILL'), STOP_MS)
      await admin.ended
      clearTimeout(timer)
      // Only an admin that was killed leaves the application behind.
      if (admin !== demo) signal(shop, 'SIGKILL')
      rmSync(data, { recursive: true, force: true })
    },
  }
}

/** Starts an agent for shell scripts at an admin's port of executors. Scripts run as nobody if this process is root. */
export async function startAgent({ executors, token, key }) {
  const work = mkdtempSync(join(tmpdir(), 'carillon-e2e-agent-'))
  chmodSync(work, 0o755)
  const flags = ['--addresses', executors, '--executor', 'agents', '--journal', join(work, 'journal'), '--allow-scripts=shell', '--script-key', key, '--max-output', '256MiB']
  const user = process.getuid() === 0 ? ['--run-as', 'nobody'] : []
  const agent = await launch(['agent', ...flags, ...user], (output) => /connected to admin/.test(output), { CARILLON_EXECUTOR_TOKEN: token })
  return {
    async stop() {
      agent.child.kill('SIGKILL')
      await agent.ended
      rmSync(work, { recursive: true, force: true })
    },
  }
}

/** Starts an admin alone, with a new data folder and the password that its operator has chosen. fill writes into its SQLite file while it is stopped. */
export async function startServer({ fill } = {}) {
  const data = mkdtempSync(join(tmpdir(), 'carillon-e2e-'))
  const password = 'a bell in the tower'
  const flags = ['--data', data, '--http', '127.0.0.1:0', '--executors', '127.0.0.1:0']
  const start = () => launch(['server', ...flags], (output) => /admin node serves.*?url=(\S+)/.exec(output)?.[1], { CARILLON_ADMIN_PASSWORD: password })
  const end = async ({ child, ended }) => {
    child.kill('SIGINT')
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    await ended
    clearTimeout(timer)
  }
  let server = await start()
  if (fill) {
    await end(server)
    await fill(join(data, 'carillon.db'))
    server = await start()
  }
  return {
    url: server.found,
    password,
    async stop() {
      await end(server)
      rmSync(data, { recursive: true, force: true })
    },
  }
}
