// An empty server, without an application: from the first page to a green run, by the
// keyboard alone. A word that is typed is one interaction, and so is each other key.
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { axe, newPage, settled, shot } from './browser.mjs'
import { startServer } from './demo.mjs'
import { browser, test } from './world.mjs'

const MOST = 8
const LIMIT_MS = 60_000

let server
after(() => server?.stop())

test('the first green run of an empty server takes at most eight interactions, all by the keyboard', async () => {
  server = await startServer()
  const visit = await newPage(browser)
  const { page } = visit
  visit.expect(/401.*\/auth\/refresh/) // the first visit has no session
  let interactions = 0
  const type = (text) => (interactions++, page.keyboard.type(text))
  const press = (key) => (interactions++, page.keyboard.press(key))
  const focused = (name) => page.waitForFunction((wanted) => document.activeElement?.textContent?.includes(wanted), name)

  const began = Date.now()
  await page.goto(server.url)
  await page.waitForURL('**/login**')
  await page.waitForFunction(() => document.activeElement?.id === 'username' || document.activeElement?.getAttribute('autocomplete') === 'username')
  await type('admin')
  await press('Tab')
  await type(server.password)
  await press('Enter')
  await page.waitForURL('**/overview')
  await settled(page)
  await page.getByRole('button', { name: 'Run a sample job' }).waitFor()
  assert.deepEqual(await axe(page), [])
  await press('Tab')
  if (await page.evaluate(() => document.activeElement?.className.includes('skip-link'))) {
    await press('Enter')
    await press('Tab')
  }
  await focused('Run a sample job')
  await press('Enter')
  await page.waitForURL('**/runs/*')
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.getByText('Succeeded').first().waitFor()
  const took = Date.now() - began
  await shot(page, 'first-run')
  assert.ok(interactions <= MOST, `${interactions} interactions`)
  assert.ok(took < LIMIT_MS, `${took} ms`)
  assert.deepEqual(visit.errors, [])
  console.log(`# green after ${interactions} interactions and ${took} ms`)
  await visit.context.close()
})
