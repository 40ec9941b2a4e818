// Lists: filters in the address, nothing found, nothing there.
import assert from 'node:assert/strict'
import { axe, env, jumps, newPage, shot } from './browser.mjs'
import { PAGES } from './everypage.mjs'
import { browser, choose, go, jobName, made, page, session, signIn, test } from './world.mjs'

test('filters live in the address: reload, Back and a second browser agree', async () => {
  await go('/runs')
  await page.getByLabel('Search by job name').fill(jobName)
  await page.waitForURL(/q=/)
  await choose('State', 'Succeeded', 'Failed', 'Cancelled')
  await page.keyboard.press('Escape')
  await choose('Cause', 'By hand')
  await page.waitForURL(/cause=manual/)
  const link = page.url()
  assert.match(link, /state=succeeded,failed,cancelled/)
  await page.getByRole('row').filter({ hasText: jobName }).first().waitFor()
  // Before, rows of the filters so far may still stand there.
  await page.reload()
  await page.getByRole('row').filter({ hasText: jobName }).first().waitFor()
  const count = await page.getByRole('row').count()
  assert.equal(page.url(), link)

  const second = await newPage(browser)
  second.expect(/401.*\/auth\/refresh/)
  await signIn(second.page, env.password)
  await second.page.waitForURL('**/overview')
  await second.page.goto(link)
  await second.page.getByRole('row').filter({ hasText: jobName }).first().waitFor()
  assert.equal(await second.page.getByRole('row').count(), count)
  assert.deepEqual(second.errors, [])
  await second.context.close()

  await page.goBack()
  assert.doesNotMatch(page.url(), /cause=/)
  assert.match(page.url(), /state=succeeded,failed,cancelled/)
})

test('words that a page does not know are not sent to the server', async () => {
  for (const list of ['/runs', '/jobs', '/timers', '/executors', '/alerts', `${made.job}/runs`]) {
    await go(`${list}?utm_source=mail`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    assert.equal(await page.getByText('This could not be loaded').count(), 0, list)
  }
})

test('an empty result of filters offers to clear them', async () => {
  await go('/jobs?q=no-job-has-this-name')
  await page.getByText('Nothing matches these filters').waitFor()
  await page.getByRole('button', { name: 'Clear filters' }).last().click()
  await page.getByRole('row').nth(1).waitFor()
})

test('a job of nobody is a clear error with its request id', async () => {
  session.expect(/404.*\/jobs\/999/)
  await go('/jobs/999')
  await page.getByText('There is nothing here').waitFor()
  await page.getByText('Request id').waitFor()
  await shot(page, 'error')
  assert.deepEqual(await axe(page), [])
})

test('the search takes letters and an Enter that come before its field', async () => {
  await go('/overview')
  await page.keyboard.press('Control+k')
  await page.keyboard.type(jobName)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: jobName }).waitFor()
})

test('no page jumps while it loads slowly, on a screen and on a phone', async () => {
  const { bad, most } = await jumps(session.context, PAGES.map((path) => env.url + path))
  assert.deepEqual(bad, [])
  console.log(`# at most ${most.toFixed(3)}`)
})
