// Signing out. The console must be free of errors.
import assert from 'node:assert/strict'
import { env } from './browser.mjs'
import { page, session, test } from './world.mjs'

test('sign out leads to the sign-in page and stays there', async () => {
  await page.getByRole('button', { name: `Account of ${env.user}` }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.waitForURL('**/login**')
  await page.goto(`${env.url}/jobs`)
  await page.waitForURL('**/login**')
})

test('the console stayed free of errors and warnings', () => {
  assert.deepEqual(session.errors, [])
})
