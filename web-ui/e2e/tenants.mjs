// Tenants: made, renamed, shut, deleted with a grace, and brought back.
import assert from 'node:assert/strict'
import { axe, settled, shot } from './browser.mjs'
import { choose, go, jobName, made, page, says, session, test } from './world.mjs'

const former = `${jobName}-t`
const name = `${jobName}-tenant`
const row = () => page.getByRole('row').filter({ hasText: name })
const button = (text, of = name) => page.getByRole('button', { name: `${text}: ${of}` })
const dialog = () => page.getByRole('dialog')

test('a tenant is made, renamed and shut; a wrong name is told at its field', async () => {
  await go('/settings/tenants')
  await page.getByRole('button', { name: 'New tenant' }).click()
  await dialog().getByLabel('Name').fill('Not a name')
  await dialog().getByRole('button', { name: 'Create' }).click()
  await dialog().getByText('Lower-case letters, digits and hyphens, beginning with a letter').waitFor()
  await dialog().getByLabel('Name').fill(former)
  await dialog().getByRole('button', { name: 'Create' }).click()
  await dialog().getByText('Nobody belongs to it yet').waitFor()
  await settled(page)
  await shot(page, 'tenant-made')
  assert.deepEqual(await axe(page), [])
  await dialog().getByRole('button', { name: 'Later' }).click()

  await button('Rename', former).click()
  await dialog().getByLabel('Name').fill(name)
  await dialog().getByRole('button', { name: 'Rename' }).click()
  await row().waitFor()
  await button('Disable').click()
  await settled(page)
  await dialog().getByLabel('Note').fill('unpaid')
  await shot(page, 'tenant-disable')
  await dialog().getByRole('button', { name: 'Disable' }).click()
  await button('Enable').waitFor()
  await says(row(), /disabled[^]*unpaid/)
})

test('its deletion asks for its name, says what goes and until when, and is taken back', async () => {
  await button('Delete').click()
  await dialog().getByText(/^Jobs: 0$/).waitFor()
  await dialog().getByLabel('Its name, to confirm').fill('another')
  await dialog().getByRole('button', { name: 'Delete' }).click()
  await dialog().getByText(`Type ${name}`).waitFor()
  await settled(page)
  await shot(page, 'tenant-delete')
  assert.deepEqual(await axe(page), [])
  await choose('It can be restored', 'for 30 days')
  await dialog().getByLabel('Its name, to confirm').fill(name)
  await dialog().getByRole('button', { name: 'Delete' }).click()
  await button('Restore').waitFor()
  await says(row(), /deleted[^]*goes in (29|30) d/)
  await shot(page, 'tenants')
  assert.deepEqual(await axe(page), [])
  assert.equal(await button('Switch').count(), 0)
  await button('Restore').click()
  await button('Enable').waitFor()
})

/** A run of another tenant is as unknown as one that never was. */
async function leaksNothing() {
  session.expect(/404.*\/runs\//)
  const told = []
  for (const address of [made.run, '/runs/999']) {
    const answer = page.waitForResponse((one) => one.url().includes(`/api/v1${address}`))
    await go(address)
    assert.equal((await answer).status(), 404)
    await page.getByText('There is nothing here').waitFor()
    told.push((await page.locator('main').innerText()).replace(/Request id.*/, ''))
  }
  assert.equal(told[0], told[1])
}

test('a platform administrator goes to work in a new tenant, and back', async () => {
  await button('Enable').click()
  await button('Disable').waitFor()
  await button('Switch').click()
  await says(row(), /current/)
  assert.equal(await button('Disable').count(), 0, 'nobody shuts the tenant that they work in')
  await says(page.getByRole('banner'), new RegExp(name))
  await leaksNothing()
  await go('/settings/people/users') // where its first administrator is added
  await page.getByText('Nobody belongs to this tenant yet').waitFor()
  await page.getByRole('button', { name: 'New user' }).click()
  await says(dialog(), /Role[^]*Administrator/i)
  await go('/settings/tenants')
  await page.getByRole('button', { name: /^Switch: / }).first().click()
  await button('Disable').waitFor()
})

test('an address names its tenant; one without leads on, and one of another tenant offers the switch', async () => {
  const here = await page.getByRole('banner').locator('strong').innerText()
  await go('/runs?state=failed')
  await page.waitForURL(`**/t/${here}/runs?state=failed`)
  await page.getByRole('link', { name: 'Jobs', exact: true }).click()
  await page.waitForURL(`**/t/${here}/jobs`)
  await page.goBack()
  await page.waitForURL(`**/t/${here}/runs?state=failed`)

  await go('/t/nobody-knows-it/jobs')
  await page.getByText('You are no member of nobody-knows-it').waitFor()
  await shot(page, 'tenant-other')
  assert.deepEqual(await axe(page), [])
  await page.getByRole('link', { name: `Stay in ${here}` }).click()
  await page.waitForURL(`**/t/${here}/overview`)
})
