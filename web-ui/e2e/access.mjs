// Who may: join tokens, users, roles.
import assert from 'node:assert/strict'
import { client } from './api.mjs'
import { axe, env, newPage, settled, shot } from './browser.mjs'
import { edits, own, PAGES } from './everypage.mjs'
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

/** What a control of someone who may more begins with. */
const CONTROL = /^(Run|Pause|Resume|Cancel|New|Create|Edit|Save|Delete|Remove|Rename|Disable|Enable|Drain|Revoke|Retry|Silence|Acknowledge|Take|End|Send|Start(?! delay)|Change|Insert|Import|Accept|Invite|Replace|More actions|Maintenance)\b/
const DENIED = /Your role does not allow this\. Ask an administrator of tenant \w/

/** No page of a viewer has a control that changes anything; pages for others say whom to ask. Answers the pages that were denied. */
async function readsOnly(visitor) {
  const found = []
  const denied = []
  for (const path of [...PAGES, ...own(), ...edits()]) {
    await visitor.goto(env.url + path)
    await settled(visitor)
    const names = await visitor.locator('main').locator('button, a.ant-btn, [role=menuitem]').evaluateAll((all) => all.map((one) => one.getAttribute('aria-label') ?? one.textContent.trim()))
    for (const name of names) if (CONTROL.test(name)) found.push(`${path}: ${name}`)
    if (DENIED.test(await visitor.locator('main').innerText())) denied.push(path)
  }
  assert.deepEqual(found, [])
  return denied
}

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
  await viewer.page.goto(`${env.url}/jobs?deleted=1`)
  await viewer.page.getByRole('row').filter({ hasText: `${jobName}-form` }).waitFor()
  assert.equal(await viewer.page.getByRole('button', { name: /^Restore/ }).count(), 0)
  assert.equal(await viewer.page.getByRole('link', { name: 'People' }).count(), 0)
  for (const address of ['jobs/new', 'calendars/new', 'scripts/new', 'settings/users', 'settings/api-keys', 'settings/tenants']) {
    await viewer.page.goto(`${env.url}/${address}`)
    await viewer.page.getByText('Your role does not allow this').waitFor()
    assert.equal(await viewer.page.locator('main button').count(), 1, `${address}: nothing but "Copy details"`)
  }
  const denied = await readsOnly(viewer.page)
  for (const path of ['/jobs/new', '/timers', '/calendars/new', `${made.job}/edit`]) assert.ok(denied.includes(path), `${path} is denied`)
  const call = await client(env.url, 'a password of my own', jobName)
  for (const [path, body] of [[`${made.job}/run`, {}], [`${made.job}/pause`, { note: '' }], [`${made.run}/cancel`, { reason: '' }], ['/jobs', { name: 'mine', executor: { name: env.executor }, handler: env.handler, schedule: { kind: 'none' } }]]) {
    await assert.rejects(call('POST', path, body), /: 403 .*permission_denied/, path)
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
