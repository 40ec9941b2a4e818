// Who may: join tokens, users, roles.
import assert from 'node:assert/strict'
import { axe, env, newPage, settled, shot } from './browser.mjs'
import { browser, go, jobName, made, page, placeOf, says, signIn, test } from './world.mjs'

test('a join token is shown once, with a program to copy', async () => {
  await go('/executors')
  await page.locator('a.exec-card').filter({ hasNotText: 'built in' }).first().click()
  await page.getByRole('button', { name: 'New join token' }).waitFor()
  made.executor = placeOf(page.url())
  await page.getByRole('button', { name: 'New join token' }).click()
  await page.getByRole('dialog').getByLabel('Name').fill(jobName)
  await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click()
  await page.getByRole('dialog').getByText('cjt_').waitFor()
  await says(page.getByRole('dialog'), /executor\.Handle/)
  await settled(page)
  await shot(page, 'join-token')
  assert.deepEqual(await axe(page), [])
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().click()
  await page.getByRole('button', { name: `Revoke: ${jobName}` }).click()
  await settled(page) // a click on a dialog that still moves may miss
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('button', { name: `Revoke: ${jobName}` }).waitFor({ state: 'detached' })
})

test('an instance is removed, and the cluster page says who was turned away, why and what to do', async () => {
  await go(made.executor)
  await page.getByRole('button', { name: /^Remove: / }).first().click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Reason').fill('smoke test')
  await says(dialog, /revoke the join token/)
  await settled(page)
  await shot(page, 'executor-remove')
  assert.deepEqual(await axe(page), [])
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await page.getByRole('region', { name: 'Blocked' }).getByText('smoke test').waitFor()
  await go('/settings/cluster')
  const row = page.getByRole('region', { name: 'Rejected' }).getByRole('row').filter({ hasText: 'An administrator keeps it out.' })
  await row.waitFor()
  await says(row, /allow it again on the page of the executor/)
})

test('a new user must choose a password, and a viewer sees no controls', async () => {
  await go('/settings/people/users')
  await page.getByRole('button', { name: 'New user' }).click()
  const form = page.getByRole('dialog')
  await form.getByLabel('User name').fill(jobName)
  await form.getByRole('button', { name: 'Create' }).click()
  const secret = page.getByRole('dialog').locator('pre')
  await secret.waitFor()
  const first = (await secret.innerText()).trim()
  await settled(page)
  await shot(page, 'user-created')
  assert.deepEqual(await axe(page), [])
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().click()

  const viewer = await newPage(browser)
  viewer.expect(/401.*\/auth\/refresh/)
  await signIn(viewer.page, first, jobName)
  await viewer.page.waitForURL('**/password**')
  await viewer.page.getByLabel('Current password').fill(first)
  await viewer.page.getByLabel('New password', { exact: true }).fill('a password of my own')
  await viewer.page.getByLabel('New password again').fill('a password of my own')
  await settled(viewer.page)
  await shot(viewer.page, 'password')
  assert.deepEqual(await axe(viewer.page), [])
  await viewer.page.getByRole('button', { name: 'Change password' }).click()
  await viewer.page.waitForURL('**/overview')
  await viewer.page.goto(`${env.url}/jobs`)
  await viewer.page.getByRole('row').nth(1).waitFor()
  for (const name of [/^Run now/, /^Pause/, /^More actions/, 'New job']) {
    assert.equal(await viewer.page.getByRole('button', { name }).count(), 0, String(name))
  }
  assert.equal(await viewer.page.getByRole('link', { name: 'People' }).count(), 0)
  for (const address of ['jobs/new', 'calendars/new', 'scripts/new', 'settings/users', 'settings/api-keys', 'settings/tenants']) {
    await viewer.page.goto(`${env.url}/${address}`)
    await viewer.page.getByText('Your role does not allow this').waitFor()
    assert.equal(await viewer.page.locator('main button').count(), 1, `${address}: nothing but "Copy details"`)
  }
  await viewer.page.goto(`${env.url}/no/such/page`)
  await viewer.page.getByText('Go to the overview').waitFor()
  assert.equal(await viewer.page.locator('main').count(), 1)
  assert.deepEqual(viewer.errors, [])
  await viewer.context.close()

  await page.getByRole('button', { name: `Delete: ${jobName}` }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('button', { name: `Delete: ${jobName}` }).waitFor({ state: 'detached' })
})
