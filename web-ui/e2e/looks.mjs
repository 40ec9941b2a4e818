// The theme of the system and of a person, from the first paint on.
import assert from 'node:assert/strict'
import { axe, env, newPage, settled, shot } from './browser.mjs'
import { browser, signIn, test } from './world.mjs'

/** How bright a colour of CSS is, 0 to 255. */
const brightness = (css) => {
  const [r, g, b] = css.match(/\d+(\.\d+)?/g).map(Number)
  return (r + g + b) / 3
}
const background = (page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)

test('a dark system has a dark page before the first script of the pages runs, and a choice outlives the system', async () => {
  const visit = await newPage(browser, { colorScheme: 'dark' })
  visit.expect(/401.*\/auth\/refresh/)
  const { page } = visit
  // The pages' own code waits: what is seen now is the first paint.
  let release
  const held = new Promise((resolve) => (release = resolve))
  await page.route('**/assets/*.js', async (route) => {
    await held
    await route.continue()
  })
  await page.goto(`${env.url}/login`, { waitUntil: 'commit' })
  await page.waitForFunction(() => document.documentElement.dataset.theme === 'dark' && document.body)
  assert.ok(brightness(await background(page)) < 60, await background(page))
  release()
  await page.unroute('**/assets/*.js')
  await signIn(page, env.password)
  await page.waitForURL('**/overview')
  await settled(page)
  assert.deepEqual(await axe(page), [])
  await shot(page, 'looks-dark')
  await page.emulateMedia({ colorScheme: 'light' })
  await page.waitForFunction(() => document.documentElement.dataset.theme === 'light')
  assert.ok(brightness(await background(page)) > 200)

  await page.getByRole('button', { name: 'Theme' }).click()
  await page.getByRole('menuitem', { name: 'Dark' }).click()
  await page.waitForFunction(() => document.documentElement.dataset.theme === 'dark')
  await page.reload()
  await settled(page)
  assert.ok(brightness(await background(page)) < 60, 'the choice counts, not the system')
  // Pictures and the editor follow.
  await page.goto(`${env.url}/jobs/new`)
  await page.locator('.cm-editor').first().waitFor()
  for (const part of ['.cm-editor', '.ant-input']) {
    const colour = await page.locator(part).first().evaluate((el) => {
      for (let at = el; at; at = at.parentElement) {
        const value = getComputedStyle(at).backgroundColor
        if (!/, 0\)$|transparent/.test(value)) return value
      }
      return 'rgb(255, 255, 255)'
    })
    assert.ok(brightness(colour) < 90, `${part}: ${colour}`)
  }
  assert.deepEqual(visit.errors, [])
  await visit.context.close()
})

test('ten tabs of one browser all load and go on', async () => {
  const visit = await newPage(browser)
  visit.expect(/401.*\/auth\/refresh/)
  await signIn(visit.page, env.password)
  await visit.page.waitForURL('**/overview')
  const tabs = []
  for (let i = 0; i < 10; i++) {
    const tab = await visit.context.newPage()
    await tab.goto(`${env.url}${i % 2 ? '/runs' : '/overview'}`)
    await tab.getByRole('heading', { level: 1 }).waitFor()
    tabs.push(tab)
  }
  // Each asks again by itself, and is answered, while all of them are open.
  const again = tabs.map((tab) => tab.waitForResponse((one) => one.url().includes('/api/v1/') && one.ok()))
  await Promise.all(again)
  for (const tab of tabs) await tab.getByText(/does not answer/).waitFor({ state: 'detached' })
  await visit.context.close()
})

