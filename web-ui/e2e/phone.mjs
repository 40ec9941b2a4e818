// Pages on a phone, and pages that are magnified.
import assert from 'node:assert/strict'
import { axe, overflow, settled, shot } from './browser.mjs'
import { go, page, test } from './world.mjs'
import { nameOf, own, PAGES } from './everypage.mjs'

const PHONE = { width: 375, height: 800 }
/** 1440 px at 200 %. */
const MAGNIFIED = { width: 720, height: 450 }
const SCREEN = { width: 1440, height: 900 }
const FIRST_ITEM_PX = 200
/** Behind tabs, a warning and the button for a new one. */
const BEHIND_TABS_PX = 280
const RUN_PX = 72
const LISTS = ['/jobs', '/runs', '/timers', '/executors', '/executors?view=table', '/executors/instances', '/calendars', '/alerts', '/alerts?state=all', '/settings/integrations/scripts', '/settings/integrations/connections', '/settings/notifications/rules', '/settings/notifications/channels', '/settings/notifications/silences', '/settings/notifications/deliveries', '/settings/people/users', '/settings/people/api-keys', '/settings/tenants']

const box = (locator) => locator.evaluate((one) => ({ top: one.getBoundingClientRect().top, height: one.getBoundingClientRect().height }))

test('on a phone the first item of each list stands within 200 px', async () => {
  await page.setViewportSize(PHONE)
  const found = []
  for (const path of LISTS) {
    await go(path)
    const item = page.locator('main .table tbody tr, main .exec-card, main .blank').first()
    // A list without an item has a drawing instead.
    if ((await item.getAttribute('class'))?.includes('blank')) continue
    const { top } = await box(item)
    assert.ok(top <= (path.startsWith('/settings/notifications/') ? BEHIND_TABS_PX : FIRST_ITEM_PX), `${path}: the first item stands at ${top} px`)
    found.push(path)
    await shot(page, `phone${nameOf(path)}`)
  }
  for (const path of ['/jobs', '/runs', '/executors']) assert.ok(found.includes(path), `${path} has no item`)
})

test('on a phone a run is at most 72 px high, and the name of a job is whole', async () => {
  await go('/runs')
  for (const row of await page.locator('.table.dense tbody tr').all()) {
    const { height } = await box(row)
    assert.ok(height <= RUN_PX, `a run is ${height} px high`)
  }
  await go('/jobs')
  const cut = await page.locator('.job-name').evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent))
  assert.deepEqual(cut, [])
})

test('on a phone the filters stand in a sheet, and those that are set in chips', async () => {
  await go('/runs')
  await page.getByRole('button', { name: 'Filters' }).click()
  const sheet = page.getByRole('dialog', { name: 'Filters' })
  await sheet.getByRole('button', { name: 'State: any' }).click()
  await sheet.getByLabel('Succeeded', { exact: true }).check()
  await page.waitForURL(/state=succeeded/)
  await sheet.getByRole('combobox', { name: 'Cause' }).selectOption({ label: 'By hand' })
  await page.waitForURL(/cause=manual/)
  await shot(page, 'phone-filters')
  assert.deepEqual(await axe(page), [])
  await sheet.getByRole('button', { name: 'Done' }).click()
  await sheet.waitFor({ state: 'detached' })
  const opener = page.getByRole('button', { name: 'Filters (2)' })
  await opener.waitFor()
  assert.ok(await opener.evaluate((one) => one === document.activeElement), 'the focus is back on the button')
  await page.getByRole('button', { name: /^By hand/ }).click()
  await page.waitForURL((url) => !url.search.includes('cause'))
  assert.match(page.url(), /state=succeeded/)
  await page.getByRole('button', { name: 'Filters (1)' }).waitFor()
  await settled(page)
  assert.deepEqual(await axe(page), [])
})

test('no page scrolls sideways on a phone, nor at 200 %, and its targets have 24 px', async () => {
  for (const size of [PHONE, MAGNIFIED]) {
    await page.setViewportSize(size)
    for (const path of [...PAGES, ...own()]) {
      await go(path)
      assert.equal(await overflow(page), 0, `${path} at ${size.width} px`)
      assert.deepEqual(await axe(page), [], `${path} at ${size.width} px`)
    }
  }
  await page.setViewportSize(SCREEN)
})
