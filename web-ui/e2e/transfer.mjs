// What an idle tab of a busy tenant takes: 1,000 jobs that fire 200 runs a
// second between them. Bytes are counted over one minute of the page's clock,
// which is moved on by hand, and each answer is counted as if it were new: how
// fast the machine fires, or this test runs, does not matter. The tenant is that of
// an admin of its own.
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { client, until } from './api.mjs'
import { GUARD_MS, newPage, settled } from './browser.mjs'
import { startDemo } from './demo.mjs'
import { browser, signIn, test } from './world.mjs'

const JOBS = 1_000
const LIMIT = 100_000
const STEP_MS = 2_500

let demo
after(() => demo?.stop())

const header = (headers, name) => Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]

/** Bytes that came over the wire for the API's answers, headers too. */
async function counting(page) {
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('Network.enable')
  const open = new Set()
  const none = { bytes: 0, answers: 0, same: 0, needless: [] }
  const count = { ...none, idle: () => open.size === 0, reset: () => Object.assign(count, none, { needless: [] }) }
  const sizes = new Map()
  const versions = new Map() // by address, that of the last answer
  let loader
  const done = (id) => {
    if (!open.delete(id)) return
    count.answers++
    count.bytes += sizes.get(id) ?? 0
    sizes.delete(id)
  }
  cdp.on('Network.requestWillBeSent', (e) => {
    if (!new URL(e.request.url).pathname.startsWith('/api/')) return
    // What a page that was left had asked for is not heard of again.
    if (loader !== e.loaderId) open.clear()
    loader = e.loaderId
    open.add(e.requestId)
  })
  cdp.on('Network.responseReceived', (e) => {
    if (!open.has(e.requestId)) return
    sizes.set(e.requestId, e.response.encodedDataLength) // the headers
    if (e.response.status === 304) {
      count.same++
      return
    }
    const { url } = e.response
    const version = header(e.response.headers, 'etag') ?? 'none'
    if (versions.get(url) === version) count.needless.push(url)
    versions.set(url, version)
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
    const end = Date.now() + GUARD_MS
    while (!count.idle() && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 5))
    assert.ok(count.idle(), 'an answer did not come')
  }
}

/** Opens a page, whose clock stands then. */
async function open(page, path) {
  await page.goto(demo.url + path)
  await settled(page)
  for (let stands = false; !stands; ) {
    const soon = (await page.evaluate(() => Date.now())) + 1_000
    stands = await page.clock.pauseAt(soon).then(
      () => true,
      (err) => {
        // On a loaded machine the second is over by then.
        if (!/to the past/.test(err.message)) throw err
        return false
      },
    )
  }
}

/** Makes 1,000 jobs, and waits until they have runs. */
async function busy(call) {
  const { items: [executor] } = await call('GET', '/executors?q=sample-shop')
  const { items: handlers } = await call('GET', `/executors/${executor.id}/handlers`)
  const items = Array.from({ length: JOBS }, (_, i) => ({
    name: `busy-${i}`,
    description: `Job ${i} of many`,
    labels: { team: `team-${i % 7}` },
    executor: { id: executor.id },
    handler: (handlers.find((one) => one.name === 'reconcile-totals') ?? handlers[0]).name,
    schedule: { kind: 'fixed_rate', every: '5s' },
    dispatchTimeout: '10s',
  }))
  const made = await call('POST', '/jobs/batch?allowUnfitInput=true', { items })
  assert.equal(made.created, JOBS, JSON.stringify(made.items.find((one) => one.problem)))
  await until(() => call('GET', '/runs?q=busy-&limit=50'), (runs) => runs.items.length === 50, 'the jobs do not fire')
}

test('an idle tab of a busy tenant takes at most 100 kB a minute', async () => {
  demo = await startDemo()
  await busy(await client(demo.url, demo.password))
  const { page } = await newPage(browser)
  const count = await counting(page)
  await page.clock.install()
  await signIn(page, demo.password, 'admin', demo.url)
  await page.waitForURL('**/overview')

  await open(page, '/calendars')
  count.reset()
  await pass(page, count, 14)
  // The demo's jobs fire meanwhile: what has changed is sent, and nothing else.
  assert.ok(count.same > count.answers / 2, `${count.same} of ${count.answers} answers were told to be the same`)
  assert.deepEqual(count.needless, [], 'sent in full, although the page had them')

  // From here on the server is not told what the page has.
  await page.route('**/api/**', (route) => {
    const { 'if-none-match': _, ...headers } = route.request().headers()
    return route.continue({ headers })
  })
  count.reset()
  await pass(page, count, 14)
  assert.ok(count.needless.length > 0, 'what is sent twice is noticed')
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
})
