// Maintenance: begun and ended, and told on every page meanwhile.
import assert from 'node:assert/strict'
import { axe, settled, shot } from './browser.mjs'
import { go, page, says, test } from './world.mjs'

test('maintenance of the tenant is begun, shown on every page, and ended', async () => {
  await go('/settings/cluster')
  const card = page.getByRole('region', { name: 'Maintenance' })
  await card.getByText('Nothing is under maintenance.').waitFor()
  await card.getByRole('button', { name: 'Start for the tenant' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('radio', { name: 'Everything goes on.' }).check()
  await dialog.getByLabel('Reason').fill('new switch in rack 7')
  await settled(page)
  await shot(page, 'maintenance-start')
  assert.deepEqual(await axe(page), [])
  await dialog.getByRole('button', { name: 'Start maintenance' }).click()
  await dialog.waitFor({ state: 'detached' })
  await says(card, /Maintenance of the tenant[^]*Everything goes on[^]*rack 7[^]*admin[^]*until it is ended/)
  assert.equal(await card.getByRole('button', { name: 'Start for the tenant' }).count(), 0)
  await settled(page)
  await shot(page, 'maintenance')
  assert.deepEqual(await axe(page), [])
  await go('/jobs')
  await page.locator('.banner').getByText('new switch in rack 7').waitFor()
  await go('/settings/cluster')
  await card.getByRole('button', { name: /^End: / }).click()
  await settled(page) // a click on a dialog that still moves may miss
  await dialog.getByRole('button', { name: 'End', exact: true }).click()
  await card.getByText('Nothing is under maintenance.').waitFor()
  await page.locator('.banner').getByText('new switch in rack 7').waitFor({ state: 'detached' })
  await card.getByRole('checkbox', { name: 'Show those that are over' }).check()
  await says(card, /rack 7[^]*admin/)
})
