// What holds for every page: accessibility, languages, narrow screens.
import assert from 'node:assert/strict'
import { axe, overflow, shot } from './browser.mjs'
import { go, heading, made, page, test } from './world.mjs'

const PAGES = ['/overview', '/jobs', '/jobs/new', '/jobs/proposals', '/runs', '/timers', '/executors', '/executors?view=table', '/calendars', '/calendars/new', '/scripts', '/scripts/new', '/connections', '/connections/new', '/limits', '/alerts', '/alerts?state=all', '/alerts/rules', '/alerts/rules/new', '/alerts/channels', '/alerts/channels/new', '/alerts/silences', '/alerts/deliveries', '/cluster', '/settings/users', '/settings/api-keys', '/settings/tenants', '/invitations']
const RAW_KEY = /\b(nav|jobs|runs|errors|action|list|field|overview|executors|tokens|alerts|deliveries|explain|why|backfill|calendars|scripts|callbacks|connections|limits|quotas|cluster|users|invitations|keys|time|unit|schemaForm|denials|refusals|proposals|timers|tenants)\.[a-zA-Z_]+(\.[a-zA-Z_]+)?\b/
/** The pages of what the steps have made. */
const own = () => [made.job, `${made.job}/why?at=2020-01-01T00:00:00.000Z`, `${made.job}/backfills`, made.run, made.calendar, made.script, made.connection, made.executor, made.incident, made.rule, made.channel]

/** "/jobs/73…/revisions" → "-jobs-id-revisions": the same name in every run. */
const nameOf = (path) => path.replace(/\?at=.*/, '').replace(/\d+/g, 'id').replace(/[/?=]/g, '-')

for (const theme of ['light', 'dark']) {
  test(`every page is free of axe violations: ${theme}`, async () => {
    await page.evaluate((value) => localStorage.setItem('carillon.theme', value), theme)
    for (const path of [...PAGES, ...own(), `${made.job}/history`, `${made.job}/revisions`, `${made.calendar}/edit`, `${made.script}/edit`, `${made.connection}/edit`]) {
      await go(path)
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), theme)
      assert.deepEqual(await axe(page), [], path)
      await shot(page, `${theme}${nameOf(path)}`)
    }
  })
}

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
