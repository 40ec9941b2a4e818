// Executors: an instance is drained; one is renamed, disabled, deleted and restored.
import assert from 'node:assert/strict'
import { axe, settled, shot } from './browser.mjs'
import { expectGone, go, heading, jobName, page, placeOf, says, test } from './world.mjs'

const dialog = () => page.getByRole('dialog')
/** Asked once, in a dialog whose button says the same. */
async function confirm(name) {
  await settled(page) // a click on a dialog that still moves may miss
  await dialog().getByRole('button', { name, exact: true }).click()
  await dialog().waitFor({ state: 'detached' })
}

test('an instance is drained and takes runs again', async () => {
  await go('/executors')
  await page.locator('a.exec-card').filter({ hasText: 'sample-shop' }).first().click()
  const instances = page.getByRole('region', { name: 'Instances' })
  await instances.getByRole('button', { name: /^Drain: / }).first().click()
  await confirm('Drain')
  await says(instances, /Draining[^]*by admin/)
  await settled(page)
  await shot(page, 'executor-drained')
  assert.deepEqual(await axe(page), [])
  await instances.getByRole('button', { name: /^Undrain: / }).first().click()
  await instances.getByRole('button', { name: /^Drain: / }).first().waitFor()
  await says(instances, /Online/)
})

test('an executor is renamed, disabled, enabled, deleted and restored', async () => {
  await go('/executors')
  await page.getByRole('button', { name: 'New executor' }).click()
  await dialog().getByLabel('Name').fill(`${jobName}-exec`)
  await dialog().getByRole('button', { name: 'Create' }).click()
  await heading(new RegExp(`${jobName}-exec`)).waitFor()
  const address = placeOf(page.url())
  await page.getByRole('button', { name: 'Rename' }).click()
  await dialog().getByLabel('Name').fill(`${jobName}-renamed`)
  await confirm('Rename')
  await heading(new RegExp(`${jobName}-renamed`)).waitFor()
  await says(page.getByRole('region', { name: 'Former names' }), new RegExp(`${jobName}-exec`))
  await page.getByRole('button', { name: 'Disable' }).click()
  await dialog().getByLabel('Note').fill('moving house')
  await settled(page)
  await shot(page, 'executor-disable')
  assert.deepEqual(await axe(page), [])
  await confirm('Disable')
  await page.getByText('moving house').waitFor()
  await page.getByRole('button', { name: 'Enable' }).click()
  await page.getByText('moving house').waitFor({ state: 'detached' })
  expectGone(address)
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await says(dialog(), /tokens, former names[^]*Delete its jobs too/)
  await confirm('Delete')
  await page.waitForURL('**/executors')
  await heading('Executors').waitFor()

  await page.getByText('Deleted', { exact: true }).click()
  await page.waitForURL(/view=deleted/)
  await page.getByRole('button', { name: `Restore: ${jobName}-renamed` }).click()
  await page.getByRole('link', { name: 'Open it' }).click()
  await heading(new RegExp(`${jobName}-renamed`)).waitFor()
  assert.equal(placeOf(page.url()), address)
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await confirm('Delete')
  await page.waitForURL('**/executors')
})
