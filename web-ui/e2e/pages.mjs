// Accessibility, languages and narrow screens of every page.
import assert from 'node:assert/strict'
import { overflow, shot } from './browser.mjs'
import { axeTest, nameOf, own, PAGES } from './everypage.mjs'
import { go, heading, page, test } from './world.mjs'

const RAW_KEY = /\b(nav|jobs|runs|errors|action|list|field|overview|executors|tokens|alerts|deliveries|explain|why|backfill|calendars|scripts|callbacks|connections|limits|quotas|cluster|users|invitations|keys|time|unit|schemaForm|denials|refusals|proposals|timers|tenants|deleted)\.[a-zA-Z_]+(\.[a-zA-Z_]+)?\b/

axeTest('light')
axeTest('dark')
test('the language changes without a reload, and no page shows a raw key', async () => {
  await go('/jobs')
  await page.evaluate(() => {
    window.marker = 'same page'
  })
  await page.getByRole('button', { name: 'Language' }).click()
  await page.getByText('中文').click()
  await heading('任务').waitFor()
  assert.equal(await page.evaluate(() => window.marker), 'same page')
  assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh')
  for (const path of [...PAGES, ...own()]) {
    await go(path)
    const text = await page.locator('body').innerText()
    assert.doesNotMatch(text, RAW_KEY, path)
    assert.match(text, /租户/, path)
    await shot(page, `zh${nameOf(path)}`)
  }
  await page.getByRole('button', { name: '语言' }).click()
  await page.getByText('English').click()
  await page.getByRole('button', { name: 'Language' }).waitFor()
})

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
