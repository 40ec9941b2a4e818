// All that holds for every page.
import assert from 'node:assert/strict'
import { overflow, shot } from './browser.mjs'
import { axeTest, languageTest, nameOf, own, PAGES } from './everypage.mjs'
import { go, heading, page, test } from './world.mjs'

axeTest('light')
axeTest('dark')
languageTest()

test('no page scrolls sideways at 375 px', async () => {
  await page.setViewportSize({ width: 375, height: 800 })
  for (const path of [...PAGES, ...own()]) {
    await go(path)
    assert.ok((await overflow(page)) <= 0, path)
    await shot(page, `narrow${nameOf(path)}`)
  }
  await page.getByRole('button', { name: 'Open navigation' }).click()
  await page.getByRole('dialog').getByRole('link', { name: 'Jobs' }).click()
  await heading('Jobs').waitFor()
  await page.setViewportSize({ width: 1360, height: 850 })
})
