// What the pages do while something is away: the network, the server, the
// pages of their own build. With processes of their own, which are cut off,
// stopped and killed.
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { axe, newPage, overflow, settled, shot } from './browser.mjs'
import { freePort, startDemo } from './demo.mjs'
import { startProxy } from './proxy.mjs'
import { browser, signIn, test } from './world.mjs'

let demo
let line
let page
/** The address of a run that goes on when the admin stops, and when that was, ms since the epoch. */
let run
let stoppedAt

after(async () => {
  line?.stop()
  await demo?.stop()
})

const nav = (name) => page.getByRole('navigation', { name: 'Main navigation' }).getByRole('link', { name })
const title = (name) => page.getByRole('heading', { level: 1, name })
const silent = () => page.getByText('The server does not answer. Reconnecting…')
const newer = () => page.getByText('A new version of these pages')
/** As if the tab came to the front: what is on the screen is asked for now. */
const poll = () => page.evaluate(() => window.dispatchEvent(new Event('visibilitychange')))
const runNow = () => page.getByRole('button', { name: /^Run now/ }).first()

test('an admin and its application start, and a line to them that can be cut', async () => {
  demo = await startDemo({ http: await freePort(), executors: await freePort() })
  line = await startProxy(demo.url)
  ;({ page } = await newPage(browser))
  await signIn(page, demo.password, 'admin', line.url)
  await page.waitForURL('**/overview')
})

test('without network the pages say so, keep what they show, and their actions rest; what was clicked comes with the network', async () => {
  await nav('Jobs').click()
  await runNow().waitFor()
  const rows = await page.getByRole('row').count()
  line.cut()
  await poll()
  await silent().waitFor()
  assert.equal(await page.getByRole('row').count(), rows)
  assert.equal(await runNow().getAttribute('aria-disabled'), 'true')
  assert.match(await runNow().getAttribute('title'), /the server does not answer/)
  await runNow().click({ force: true }) // it looks clickable to nobody
  assert.equal(await page.getByRole('dialog').count(), 0)
  for (const theme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: theme })
    await page.waitForFunction((value) => document.documentElement.dataset.theme === value, theme)
    await settled(page)
    assert.deepEqual(await axe(page), [], theme)
    await shot(page, `away-jobs-${theme}`)
  }
  await page.setViewportSize({ width: 375, height: 800 })
  assert.ok((await overflow(page)) <= 0)
  await shot(page, 'away-jobs-narrow')
  await page.setViewportSize({ width: 1360, height: 850 })

  // Pages of a chunk that was not loaded yet.
  await nav('Calendars').click()
  await page.waitForURL('**/calendars')
  await page.getByText('Loading…').waitFor()
  assert.equal(await newer().count(), 0, 'a lost network is no upgrade')
  line.mend()
  await title('Calendars').waitFor()
  await silent().waitFor({ state: 'detached' })
  assert.equal(await newer().count(), 0)
  await nav('Jobs').click()
  await page.locator('button[aria-label^="Run now"]:not([aria-disabled])').first().waitFor()
})

test('a dialog that is open when the network goes keeps what was entered and cannot be confirmed', async () => {
  await runNow().click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Note').fill('kept')
  line.cut()
  await poll()
  await dialog.getByText('Not possible now').first().waitFor()
  const ok = dialog.getByRole('button', { name: 'Run', exact: true })
  await ok.click({ force: true })
  assert.equal(await ok.getAttribute('aria-disabled'), 'true')
  await settled(page)
  assert.deepEqual(await axe(page), [])
  await shot(page, 'away-dialog')
  line.mend()
  await poll()
  await dialog.getByText('Not possible now').first().waitFor({ state: 'detached' })
  assert.equal(await dialog.getByLabel('Note').inputValue(), 'kept')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
})

test('an error stays, with its way to try again, until an answer comes', async () => {
  const asked = []
  let answers = false
  await page.route('**/api/v1/limits', (route) => {
    asked.push(route)
    if (answers) return route.continue()
    return route.fulfill({ status: 500, contentType: 'application/problem+json', body: JSON.stringify({ status: 500, code: 'internal', title: 'Internal Server Error', instance: `req-${asked.length}` }) })
  })
  await nav('Limits').click()
  const again = page.getByRole('button', { name: 'Try again' })
  await again.waitFor()
  await page.getByText(/req-\d/).waitFor()
  await page.getByRole('button', { name: 'Copy details' }).waitFor()
  await page.evaluate(() => {
    const error = document.querySelector('.blank')
    window.blinks = 0
    new MutationObserver(() => {
      if (!error.isConnected || !error.querySelector('.ant-btn-primary:enabled') || document.querySelector('main .skeleton')) window.blinks++
    }).observe(document.body, { childList: true, subtree: true })
  })
  const before = asked.length
  await again.click()
  await page.getByText('Trying again…').waitFor()
  // Its own polling goes on as well.
  while (asked.length < before + 7) {
    await poll()
    await page.waitForTimeout(100)
  }
  assert.equal(await page.evaluate(() => window.blinks), 0, 'the error was taken away while it was asked again')
  assert.equal(await again.isEnabled(), true)
  assert.deepEqual(await axe(page), [])
  await shot(page, 'away-error')
  answers = true
  const row = page.getByRole('row').nth(1).waitFor()
  await Promise.any([again.click(), row]) // its own polling may be quicker
  await row
  await page.unroute('**/api/v1/limits')
})

test('a page whose first answer never came says so while the network is away, and fills itself when it is back', async () => {
  await nav('Jobs').click()
  await page.getByRole('link', { name: 'reload-prices' }).click()
  await title('reload-prices').waitFor()
  await nav('Jobs').click()
  const other = page.getByRole('link', { name: 'export-archive' })
  await other.waitFor()
  line.cut()
  await other.click()
  await page.getByRole('button', { name: 'Try again' }).waitFor()
  await page.getByRole('button', { name: 'Try again' }).click()
  await shot(page, 'away-first-answer')
  assert.deepEqual(await axe(page), [])
  line.mend()
  await title('export-archive').waitFor()
})

/** Makes a job of the handler that takes long, whose runs wait for no schedule's. */
async function longJob(name) {
  const call = async (path, token, body) => {
    const res = await fetch(`${demo.url}/api/v1${path}`, {
      headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    })
    assert.ok(res.ok, `${path}: ${res.status}`)
    return res.json()
  }
  const { accessToken } = await call('/auth/login', '', { username: 'admin', password: demo.password })
  const { items } = await call('/executors?q=sample-shop', accessToken)
  await call('/jobs?allowUnfitInput=true', accessToken, { name, executor: { id: items[0].id }, handler: 'export-archive', schedule: { kind: 'none' } })
}

test('a server that is stopped without a word counts as silent after 10 s, and its actions are back with it', async () => {
  await longJob('long-export')
  await nav('Runs').click()
  await nav('Jobs').click()
  await page.getByRole('button', { name: 'Run now: long-export' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Run', exact: true }).click()
  await page.waitForURL('**/runs/*')
  run = page.url()
  await page.locator('h1 .state', { hasText: 'Running' }).waitFor()
  stoppedAt = Date.now()
  await nav('Jobs').click()
  await page.locator('button[aria-label^="Run now"]:not([aria-disabled])').first().waitFor()
  demo.signal('SIGSTOP')
  await silent().waitFor()
  assert.equal(await runNow().getAttribute('aria-disabled'), 'true')
  // The application stops a handler after 12 s without an answer; its lease is 15 s.
  await page.waitForTimeout(Math.max(0, stoppedAt + 17_000 - Date.now()))
  demo.signal('SIGCONT')
  await silent().waitFor({ state: 'detached' })
  assert.equal(await runNow().getAttribute('aria-disabled'), null)
})

test('a run that was stopped because the admin was away blames the admin, in both languages', async () => {
  await page.goto(run)
  await page.locator('h1 .state').filter({ hasText: /Failed|Lost/ }).waitFor()
  // What the run alone tells is there at once; who is to blame comes with its explanation.
  await page.locator('.explain-summary', { hasText: 'no admin node answered its executor' }).getByText('Cause: admin').waitFor()
  await settled(page)
  assert.deepEqual(await axe(page), [])
  await shot(page, 'away-blamed')
  await page.getByRole('button', { name: 'Language' }).click()
  await page.getByText('中文').click()
  await page.locator('.explain-summary', { hasText: '没有管理节点应答其执行器' }).getByText('原因方：管理节点').waitFor()
  assert.doesNotMatch(await page.locator('.explain-summary').innerText(), /处理器返回了错误/)
  await settled(page)
  await shot(page, 'away-blamed-zh')
  await page.getByRole('button', { name: '语言' }).click()
  await page.getByText('English').click()
  await page.getByRole('button', { name: 'Language' }).waitFor()
})

test('a server that was killed and started again is no new version', async () => {
  await demo.kill()
  await poll()
  await silent().waitFor()
  await nav('Integrations').click()
  await demo.restart()
  await title('Connections').waitFor()
  await silent().waitFor({ state: 'detached' })
  assert.equal(await newer().count(), 0)
})

test('an upgraded server is told, and the reload leads to the page that was asked for', async () => {
  // The next build: another entry script, and the chunks of this one are gone.
  await page.route(`${line.url}/`, async (route) => {
    const answer = await route.fetch()
    await route.fulfill({ response: answer, body: (await answer.text()).replace(/\/assets\/index-[^"]+\.js/, '/assets/index-next.js') })
  })
  await page.route('**/assets/AlertsPage-*', (route) => route.fulfill({ status: 404, body: 'not found' }))
  await nav('Alerts').click()
  await newer().first().waitFor()
  await settled(page)
  assert.equal(await silent().count(), 0)
  assert.deepEqual(await axe(page), [])
  await shot(page, 'away-upgraded')
  await page.unrouteAll()
  await page.getByRole('button', { name: 'Reload now' }).first().click()
  await title('Alerts').waitFor()
  assert.match(page.url(), /\/alerts$/)
  assert.equal(await newer().count(), 0)
})
