// Lists without items, lists of which nothing matches, and lists that fail; on a new server that has nothing yet.
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { axe, jumps, newPage, settled, shot } from './browser.mjs'
import { startServer } from './demo.mjs'
import { browser, signIn, test } from './world.mjs'

const LISTS = ['/jobs', '/runs', '/timers', '/executors', '/calendars', '/alerts', '/settings/notifications/rules', '/settings/notifications/channels', '/settings/notifications/silences', '/settings/notifications/deliveries', '/settings/integrations/connections', '/settings/integrations/scripts', '/settings/people/api-keys']

let server
let page
let visit
after(() => server?.stop())

test('a new server starts', async () => {
  server = await startServer()
  visit = await newPage(browser)
  visit.expect(/401.*\/auth\/refresh|500|ERR_FAILED/)
  ;({ page } = visit)
  await signIn(page, server.password, 'admin', server.url)
  await page.waitForURL('**/overview')
})

for (const path of LISTS) {
  test(`${path}: an empty list teaches, one of which nothing matches clears its filters, one that fails can be asked again`, async () => {
    await page.goto(server.url + path)
    await settled(page)
    const empty = page.locator('main .blank')
    await empty.first().waitFor()
    assert.ok((await empty.first().innerText()).trim().length > 20, 'it says what would stand here')
    assert.deepEqual(await axe(page), [])
    await shot(page, `empty${path.replaceAll('/', '-')}`)

    // A failure of the server, told with its request id and a way to try again.
    let broken = true
    await page.route('**/api/v1/**', (route) => {
      const { pathname } = new URL(route.request().url())
      if (!broken || route.request().method() !== 'GET' || /\/(me|auth|events|status)\b/.test(pathname)) return route.continue()
      return route.fulfill({ status: 500, contentType: 'application/problem+json', body: JSON.stringify({ type: 'urn:carillon:problem:internal', title: 'Internal Server Error', status: 500, code: 'internal', detail: 'it broke', instance: '4711aa' }) })
    })
    await page.goto(server.url + path)
    const again = page.getByRole('button', { name: 'Try again' }).first()
    await again.waitFor()
    await page.getByText('4711aa').first().waitFor()
    assert.deepEqual(await axe(page), [])
    await shot(page, `failed${path.replaceAll('/', '-')}`)
    broken = false
    await again.click()
    await empty.first().waitFor()
    await page.unroute('**/api/v1/**')
  })
}

test('nothing of an empty page jumps while it loads slowly, on a screen and on a phone', async () => {
  const { bad, most } = await jumps(visit.context, ['/overview', ...LISTS, '/settings/cluster', '/jobs/new'].map((path) => server.url + path))
  assert.deepEqual(bad, [])
  console.log(`# at most ${most.toFixed(3)}`)
})
