// The pages there are, and what holds for each of them: accessibility and languages.
import assert from 'node:assert/strict'
import { axe, shot } from './browser.mjs'
import { go, heading, made, page, test } from './world.mjs'

export const PAGES = ['/overview', '/jobs', '/jobs/new', '/jobs/proposals', '/runs', '/timers', '/executors', '/executors?view=table', '/calendars', '/calendars/new', '/scripts', '/scripts/new', '/connections', '/connections/new', '/limits', '/alerts', '/alerts?state=all', '/alerts/rules', '/alerts/rules/new', '/alerts/channels', '/alerts/channels/new', '/alerts/silences', '/alerts/deliveries', '/cluster', '/settings/users', '/settings/api-keys', '/settings/tenants', '/invitations']
const RAW_KEY = /\b(nav|jobs|runs|errors|action|list|field|overview|executors|tokens|alerts|deliveries|explain|why|backfill|calendars|scripts|callbacks|connections|limits|quotas|cluster|users|invitations|keys|time|unit|schemaForm|denials|refusals|proposals|timers|tenants)\.[a-zA-Z_]+(\.[a-zA-Z_]+)?\b/
/** The pages of what the steps have made. */
export const own = (...edited) =>
  [
    [made.job, '', '/why?at=2020-01-01T00:00:00.000Z', '/backfills', ...edited.filter((part) => part !== '/edit')],
    ...[made.calendar, made.script, made.connection].map((address) => [address, '', ...edited.filter((part) => part === '/edit')]),
    ...[made.run, made.executor, made.incident, made.rule, made.channel].map((address) => [address, '']),
  ].flatMap(([address, ...parts]) => (address ? parts.map((part) => address + part) : []))

/** "/jobs/73…/revisions" → "-jobs-id-revisions": the same name in every run. */
export const nameOf = (path) => path.replace(/\?at=.*/, '').replace(/\d+/g, 'id').replace(/[/?=]/g, '-')

export const axeTest = (theme) =>
  test(`every page is free of axe violations: ${theme}`, async () => {
    await page.evaluate((value) => localStorage.setItem('carillon.theme', value), theme)
    for (const path of [...PAGES, ...own('/history', '/revisions', '/edit')]) {
      await go(path)
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), theme)
      assert.deepEqual(await axe(page), [], path)
      await shot(page, `${theme}${nameOf(path)}`)
    }
  })

export const languageTest = () =>
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
