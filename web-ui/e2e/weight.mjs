// The files that a page loads in a browser with an empty cache.
import assert from 'node:assert/strict'
import { env, newPage, settled } from './browser.mjs'
import { browser, signIn, test } from './world.mjs'
import { PAGES } from './everypage.mjs'

const FILES = 30
const LIGHT = ['/overview', '/jobs', '/runs']
/** Names of the chunks that only forms and pickers need. */
const HEAVY = /\/(form|select|picker|dialog|menu|field|number)-/

test('a page loads at most 30 files, and pages that are read load no form, no picker and no menu', async () => {
  const { page, context, expect } = await newPage(browser)
  expect(/401.*\/auth\/refresh/)
  await signIn(page, env.password)
  await page.waitForURL('**/overview')
  for (const path of PAGES) {
    await page.goto(env.url + path)
    await settled(page)
    const files = await page.evaluate(() => [location.href, ...performance.getEntriesByType('resource').map((one) => one.name).filter((name) => /\.(js|css)$/.test(new URL(name).pathname))])
    assert.ok(files.length <= FILES, `${path}: ${files.length} files\n${files.join('\n')}`)
    if (LIGHT.includes(path)) assert.deepEqual(files.filter((name) => HEAVY.test(name)), [], path)
  }
  await context.close()
})
