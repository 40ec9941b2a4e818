// What is left at the end.
import assert from 'node:assert/strict'
import { expectGone, go, jobName, made, page, placeOf, test } from './world.mjs'

test('delete the job', async () => {
  await go(made.job)
  expectGone(made.job)
  await page.getByRole('button', { name: `More actions for ${jobName}` }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('It will not fire again.').waitFor()
  // Enter must not destroy: the focus stands on the way out.
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Cancel')
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await page.waitForURL((url) => placeOf(url) === '/jobs')
})

test('delete the connection', async () => {
  await go(made.connection)
  expectGone(made.connection)
  await page.getByRole('button', { name: 'Delete' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('What still names it fails from then on.').waitFor()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await page.waitForURL((url) => placeOf(url) === '/settings/integrations/connections')
  await page.getByText('No connection to a broker yet').waitFor()
})

test('a process that was removed is allowed again', async () => {
  await go(made.executor)
  const out = page.getByRole('region', { name: 'Blocked' })
  await out.getByRole('button', { name: /^Allow again/ }).click()
  await out.getByText('Nothing is blocked.').waitFor()
})
