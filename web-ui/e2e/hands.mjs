// A person without a mouse.
import assert from 'node:assert/strict'
import { env, settled } from './browser.mjs'
import { expectGone, go, heading, jobName, page, placeOf, test } from './world.mjs'

const name = `${jobName}-keys`
/** So many stops a page has at most before the one that is looked for. */
const STOPS = 150

/** Presses Tab until the element has the focus. */
async function tabTo(target, key = 'Tab') {
  await target.waitFor()
  for (let i = 0; i < STOPS; i++) {
    if (await target.evaluate((one) => one === document.activeElement)) return
    await page.keyboard.press(key)
  }
  assert.fail(`no stop at ${target}`)
}
const field = (label) => page.getByLabel(label, { exact: true })

/** Opens a select with the keyboard, types a part of the option and takes it. */
async function pick(label, text) {
  const box = page.getByRole('combobox', { name: label })
  await tabTo(box)
  await page.keyboard.press('ArrowDown')
  await page.keyboard.type(text)
  await page.locator('.ant-select-item-option-active', { hasText: text }).waitFor()
  await page.keyboard.press('Enter')
}

test('a job is made, run, read and cancelled by the keyboard alone', async () => {
  await go('/jobs')
  await tabTo(page.getByRole('link', { name: 'New job' }).or(page.getByRole('button', { name: 'New job' })).first())
  await page.keyboard.press('Enter')
  await page.waitForURL('**/jobs/new')
  await tabTo(field('Name'))
  await page.keyboard.type(name)
  await pick('Executor', env.executor)
  await pick('Handler', env.handler)
  await tabTo(field('Cron expression'))
  await page.keyboard.type('0 30 4 * * *')
  const create = page.getByRole('button', { name: 'Create', exact: true })
  await tabTo(create)
  await page.keyboard.press('Enter')
  await heading(name).waitFor()
  const job = placeOf(page.url())

  await tabTo(page.getByRole('button', { name: 'Run now' }).first())
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog')
  await tabTo(dialog.getByRole('button', { name: 'Run', exact: true }))
  await page.keyboard.press('Enter')
  await page.waitForURL('**/runs/*')
  await page.locator('.log-line').first().waitFor()
  const log = page.getByRole('region', { name: 'Log of the run' })
  await tabTo(log)
  await page.keyboard.press('PageUp')
  await tabTo(page.getByRole('button', { name: 'Cancel run' }), 'Shift+Tab')
  await page.keyboard.press('Enter')
  await tabTo(dialog.getByLabel('Reason'))
  await page.keyboard.type('by the keyboard')
  await tabTo(dialog.getByRole('button', { name: 'Cancel run' }))
  await page.keyboard.press('Enter')
  await page.locator('h1 .state', { hasText: 'Cancelled' }).waitFor()

  // Escape closes what is on top, and nothing else.
  await go(job)
  await tabTo(page.getByRole('button', { name: 'Pause' }).first())
  await page.keyboard.press('Enter')
  await dialog.waitFor()
  await settled(page)
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  assert.equal(placeOf(page.url()), job)
  const more = page.getByRole('button', { name: /^More actions/ }).first()
  await tabTo(more)
  await page.keyboard.press('Enter')
  await page.getByRole('menuitem', { name: 'Edit' }).waitFor()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await settled(page)
  expectGone(job)
  await tabTo(dialog.getByRole('button', { name: 'Delete' }))
  await page.keyboard.press('Enter')
  await page.waitForURL((url) => placeOf(url) !== job)
})
