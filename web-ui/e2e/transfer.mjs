// What an idle tab of a busy tenant takes: 1,000 jobs that fire 200 runs a
// second between them. Bytes are counted over one minute of the page's clock,
// which is moved on by hand, and each answer is counted as if it were new: how
// fast the machine fires, or this test runs, does not matter.
import assert from 'node:assert/strict'
import { env, newPage, settled } from './browser.mjs'
import { browser, signIn, test } from './world.mjs'

const JOBS = 1_000
const LIMIT = 100_000
const STEP_MS = 2_500

async function call(method, path, token, body) {
  const options = { method, headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' } }
  if (body) options.body = JSON.stringify(body)
  const res = await fetch(`${env.url}/api/v1${path}`, options)
  if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${await res.text()}`)
  return res.status === 204 ? undefined : res.json()
}

/** Bytes that came over the wire for the API's answers, headers too. */
async function counting(page) {
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('Network.enable')
  const open = new Set()
  const count = { bytes: 0, answers: 0, same: 0, idle: () => open.size === 0, reset: () => Object.assign(count, { bytes: 0, answers: 0, same: 0 }) }
  const sizes = new Map()
  const done = (id) => {
    if (!open.delete(id)) return
    count.answers++
    count.bytes += sizes.get(id) ?? 0
    sizes.delete(id)
  }
  cdp.on('Network.requestWillBeSent', (e) => {
    if (new URL(e.request.url).pathname.startsWith('/api/')) open.add(e.requestId)
  })
  cdp.on('Network.responseReceived', (e) => {
    if (!open.has(e.requestId)) return
    sizes.set(e.requestId, e.response.encodedDataLength) // the headers
    if (e.response.status === 304) count.same++
  })
  cdp.on('Network.loadingFinished', (e) => {
    if (open.has(e.requestId)) sizes.set(e.requestId, e.encodedDataLength)
    done(e.requestId)
  })
  cdp.on('Network.loadingFailed', (e) => done(e.requestId))
  return count
}

/** Moves the page's clock on by so many steps, and waits for the answers of each. */
async function pass(page, count, steps) {
  for (let step = 0; step < steps; step++) {
    await page.clock.runFor(STEP_MS)
    for (let i = 0; !count.idle() && i < 1_000; i++) await new Promise((resolve) => setTimeout(resolve, 5))
    assert.ok(count.idle(), 'an answer did not come within five seconds')
  }
}

/** Opens a page, whose clock stands then. */
async function open(page, path) {
  await page.goto(env.url + path)
  await settled(page)
  await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 1_000)
}

/** Makes 1,000 jobs, and waits until they have runs. */
async function busy(token) {
  // The step before lets the application in again, which comes back in its own time.
  let executors, executor
  for (let i = 0; i < 480 && !executor; i++) {
    if (i > 0) await new Promise((resolve) => setTimeout(resolve, 250))
    executors = await call('GET', '/executors?limit=200', token)
    executor = executors.items.find((one) => one.instancesOnline > 0)
  }
  assert.ok(executor, `no executor came online: ${JSON.stringify(executors)}`)
  const { items: handlers } = await call('GET', `/executors/${executor.id}/handlers`, token)
  const items = Array.from({ length: JOBS }, (_, i) => ({
    name: `busy-${i}`,
    description: `Job ${i} of many`,
    labels: { team: `team-${i % 7}` },
    executor: { id: executor.id },
    handler: (handlers.find((one) => one.name === 'reconcile-totals') ?? handlers[0]).name,
    schedule: { kind: 'fixed_rate', every: '5s' },
    dispatchTimeout: '10s',
  }))
  const made = await call('POST', '/jobs/batch?allowUnfitInput=true', token, { items })
  assert.equal(made.created, JOBS, JSON.stringify(made.items.find((one) => one.problem)))
  for (let i = 0; i < 150; i++) {
    const runs = await call('GET', '/runs?q=busy-&limit=50', token)
    if (runs.items.length === 50) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  assert.fail('the jobs do not fire')
}

async function clean(token) {
  for (let tries = 0; tries < 10; tries++) {
    const { items } = await call('GET', '/jobs?q=busy-&limit=200', token)
    if (items.length === 0) return
    await Promise.all(items.map((one) => call('DELETE', `/jobs/${one.id}`, token)))
  }
}

test('an idle tab of a busy tenant takes at most 100 kB a minute', async () => {
  const { accessToken: token } = await call('POST', '/auth/login', '', { username: env.user, password: env.password })
  await busy(token)
  const { page, context } = await newPage(browser)
  try {
    const count = await counting(page)
    await page.clock.install()
    await signIn(page, env.password)
    await page.waitForURL('**/overview')

    await open(page, '/calendars')
    count.reset()
    await pass(page, count, 14)
    assert.ok(count.answers > 0 && count.same === count.answers, `${count.same} of ${count.answers} answers were told to be the same`)

    // From here on the server is not told what the page has.
    await page.route('**/api/**', (route) => {
      const { 'if-none-match': _, ...headers } = route.request().headers()
      return route.continue({ headers })
    })
    for (const path of ['/overview', '/jobs', '/runs', '/executors']) {
      await page.clock.resume()
      await open(page, path)
      count.reset()
      await pass(page, count, 60_000 / STEP_MS)
      console.log(`${path}: ${count.bytes} bytes a minute in ${count.answers} answers`)
      assert.equal(count.same, 0)
      assert.ok(count.answers >= 2, `${path} asks again`)
      assert.ok(count.bytes <= LIMIT, `${path}: ${count.bytes} bytes a minute`)
    }
  } finally {
    await context.close()
    await clean(token)
  }
})
