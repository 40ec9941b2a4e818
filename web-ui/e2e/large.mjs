// The pages of a tenant with 10,000 jobs and 1,000,000 runs. It makes them in two minutes,
// so it is not a step of smoke.mjs: `make proof-large`. Times are printed, not judged.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after } from 'node:test'
import { env, newPage, settled } from './browser.mjs'
import { startServer } from './demo.mjs'
import { browser, signIn, test } from './world.mjs'

const IDLE_MS = 60_000
const IDLE_BYTES = 100_000
const root = new URL('../..', import.meta.url).pathname

let server
/** A second use of a browser's session ends it, so that all pages are of one. */
let visit
after(() => server?.stop())

/** Opens a page without the browser's cache; milliseconds until its data are on the screen. */
async function open(path, shown) {
  const page = await visit.context.newPage()
  const wire = await visit.context.newCDPSession(page)
  await wire.send('Network.enable')
  await wire.send('Network.setCacheDisabled', { cacheDisabled: true })
  await page.goto(server.url + path, { waitUntil: 'commit' })
  const first = await page.waitForFunction((part) => document.querySelector('h1') && document.querySelector(part) && performance.now(), shown, { polling: 'raf' })
  const ms = Math.round(await first.jsonValue())
  await settled(page)
  return { page, wire, ms, all: Math.round(await page.evaluate(() => performance.now())) }
}

test('a server with 10,000 jobs and 1,000,000 runs', async () => {
  server = await startServer({
    fill: (file) => execFileSync('go', ['run', './admin/tools/bench', 'seed', '--database', `sqlite:${file}`], { cwd: root, stdio: 'inherit' }),
  })
  visit = await newPage(browser)
  visit.expect(/401.*\/auth\/refresh/)
  await signIn(visit.page, server.password, env.user, server.url)
  await visit.page.waitForURL('**/overview')
  await settled(visit.page)
})

test('first content of each page, and the bytes of an idle page', async () => {
  const rows = 'main tbody tr a'
  const addressOf = async (list, kind) => {
    const { page } = await open(list, rows)
    const address = await page.locator(`main tbody a[href*="/${kind}/"]`).first().getAttribute('href')
    await page.close()
    return address.slice(address.indexOf(`/${kind}/`))
  }
  const [job, run] = [await addressOf('/jobs', 'jobs'), await addressOf('/runs', 'runs')]
  const pages = {
    '/overview': 'main svg', '/jobs': rows, '/jobs?sort=failures': rows, '/jobs?state=failing': rows, '/jobs?group=executor': 'main button',
    '/runs': rows, '/runs?state=failed': rows, '/runs?q=pay': rows, [job]: 'main svg', [run]: 'main h2', '/executors': 'main a',
  }
  for (const [path, shown] of Object.entries(pages)) {
    const { page, wire, ms, all } = await open(path, shown)
    let bytes = 0
    wire.on('Network.dataReceived', (event) => (bytes += event.encodedDataLength))
    if (!path.includes('?')) await page.waitForTimeout(IDLE_MS)
    assert.ok(bytes <= IDLE_BYTES, `${path}: ${bytes} bytes in a minute`)
    console.log(`${path.padEnd(28)} first content ${ms} ms, all ${all} ms${path.includes('?') ? '' : `, ${Math.round(bytes / 1000)} kB in an idle minute`}`)
    await page.close()
  }
  assert.deepEqual(visit.errors, [])
})

test('the palette finds a job among 10,000', async () => {
  const { page } = await open('/overview', 'main svg')
  const began = Date.now()
  await page.keyboard.press('Control+k')
  await page.keyboard.type('tax-00075') // letters that come before the field are not lost
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'tax-00075' }).waitFor()
  console.log(`from Ctrl-K to the page of the job ${Date.now() - began} ms`)
})
