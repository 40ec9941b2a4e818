// Signing in.
import assert from 'node:assert/strict'
import { axe, env, shot } from './browser.mjs'
import { heading, page, session, signIn, test } from './world.mjs'

test('sign in: a wrong password is told, the right one leads on', async () => {
  // The first visit has no session yet, and the wrong password is refused.
  session.expect(/401.*\/auth\/(refresh|login)/)
  await page.goto(env.url)
  await page.waitForURL('**/login**')
  await shot(page, 'login')
  assert.deepEqual(await axe(page), [])
  await signIn(page, 'certainly-not-the-password')
  await page.getByText('User name or password is wrong.').waitFor()
  await signIn(page, env.password)
  await page.waitForURL(/\/(overview|password)/)
  if (page.url().includes('/password')) {
    // The first password must be replaced; the new one is for this run only.
    const next = `${env.password}-e2e`
    await page.getByLabel('Current password').fill(env.password)
    await page.getByLabel('New password', { exact: true }).fill(next)
    await page.getByLabel('New password again').fill(next)
    await shot(page, 'password')
    assert.deepEqual(await axe(page), [])
    await page.getByRole('button', { name: 'Change password' }).click()
    await page.waitForURL('**/overview')
    env.password = next
  }
  await heading('Overview').waitFor()
})

test('a reload keeps the session', async () => {
  await page.reload()
  await heading('Overview').waitFor()
  assert.match(page.url(), /\/overview$/)
})
