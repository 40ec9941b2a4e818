// Runs: started by hand, followed, cancelled, their log, why they came as they did.
import assert from 'node:assert/strict'
import { axe, settled, shot } from './browser.mjs'
import { go, jobName, made, page, placeOf, says, session, test } from './world.mjs'

test('run now leads to the run page, whose log is live', async () => {
  await go(`/jobs?q=${jobName}`)
  await page.getByRole('button', { name: `Run now: ${jobName}` }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('group', { name: 'Input' }).waitFor()
  await settled(page)
  await shot(page, 'run-now')
  assert.deepEqual(await axe(page), [])
  await dialog.getByRole('button', { name: 'Run', exact: true }).click()
  await page.waitForURL('**/runs/*')
  made.run = placeOf(page.url())
  await page.locator('.log-line').first().waitFor()
  await shot(page, 'run-live')
  assert.deepEqual(await axe(page), [])
})

test('a cancel stops the run, and its page says how it ended', async () => {
  // It may end by itself while the question is on the screen.
  session.expect(/409.*\/cancel/)
  const cancel = page.getByRole('button', { name: 'Cancel run' })
  if (await cancel.isVisible()) {
    await cancel.click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Reason').fill('smoke test')
    assert.equal(await page.getByRole('button', { name: 'Keep it running' }).isVisible(), true)
    await dialog.getByRole('button', { name: 'Cancel run' }).click()
  }
  await page.locator('h1 .state').filter({ hasText: /Succeeded|Failed|Timed out|Cancelled/ }).waitFor()
  await page.getByText('complete').waitFor()
  await settled(page)
  await shot(page, 'run-ended')
  const lines = await page.locator('.log-line').count()
  assert.ok(lines > 0 && lines < 200, `${lines} lines in the page`)
})

test('a list of runs names its jobs on half a screen, and a click in a row opens its run', async () => {
  await page.setViewportSize({ width: 1024, height: 800 })
  for (const [list, column] of [['/runs', '.col-took'], [made.job, '.col-took'], [`${made.job}/runs`, '.col-took']]) {
    await go(list)
    const row = page.locator('tr.opens').first()
    await row.waitFor()
    if (list === '/runs') {
      const { width } = await row.locator('.col-job').boundingBox()
      assert.ok(width >= 160, `the job has ${width} px`)
      assert.ok(await page.getByRole('columnheader', { name: 'Message' }).isVisible())
    }
    await row.locator(column).click({ position: { x: 2, y: 2 } })
    await page.waitForURL('**/runs/*')
    await page.goBack()
  }
  await page.setViewportSize({ width: 1360, height: 850 })
  await go(made.run)
})

test('a line of the log has its own address', async () => {
  await page.locator('.log-line a.ln').first().click()
  assert.match(page.url(), /#L1$/)
  await page.reload()
  await page.locator('.log-line.target').waitFor()
})

test('the log is searched, filtered and jumped through', async () => {
  const [word] = (await page.locator('.log-line .grow').first().innerText()).trim().split(/\s+/)
  await page.getByLabel('Search in the log').fill(word)
  await page.locator('mark').first().waitFor()
  await page.getByLabel('Only matching lines').check()
  await page.locator('.log-line mark').first().waitFor()
  await settled(page)
  for (const text of await page.locator('.log-line .grow').allInnerTexts()) assert.ok(text.toLowerCase().includes(word.toLowerCase()), text)
  assert.deepEqual(await axe(page), [])
  await shot(page, 'run-log-search')
  await page.getByLabel('Only matching lines').uncheck()
  await page.getByLabel('Search in the log').fill('')
  await page.getByLabel('Go to line').fill('2')
  await page.getByLabel('Go to line').press('Enter')
  await page.locator('.log-line.target').waitFor()
  assert.match(page.url(), /#L[12]$/)
})

test('a log of which lines are missing says how many and why, and not that it is complete', async () => {
  const logs = '**/api/v1/runs/*/log?*'
  await page.route(logs, async (route) => {
    const answer = await route.fetch()
    const missing = [{ lines: 44_000, why: 'executor' }, { lines: 421, why: 'run_limit' }]
    await route.fulfill({ response: answer, json: { ...(await answer.json()), truncated: true, counts: { written: 100_001, kept: 55_580, missing } } })
  })
  await go(made.run)
  await page.getByText('55,580 of 100,001 lines, 44,000 missing').waitFor()
  assert.equal(await page.getByText('· complete').count(), 0)
  await settled(page)
  assert.deepEqual(await axe(page), [])
  await shot(page, 'run-log-missing')
  await page.unroute(logs)
})

test('a run says why it came as it did: its steps, and the instances considered', async () => {
  await go(made.run)
  await page.locator('.explain-summary', { hasText: /^It (ran|was|ended)/ }).waitFor()
  const steps = page.getByRole('table', { name: 'What happened' })
  await steps.getByText('The handler started').waitFor()
  await says(steps, /An admin node wrote the run down[\s\S]*Offered to instance[\s\S]*\+ \d/)
  await says(page.getByRole('list', { name: 'Instances considered' }), /It was chosen/)
})

test('a job says why nothing ran at a moment, and leads to the next fire time', async () => {
  await go(`${made.job}?why=last`)
  await page.getByRole('button', { name: 'Next fire' }).click()
  await page.getByText('It lies ahead').waitFor()
  await go(`${made.job}?why=2020-01-01T00:00:00.000Z`)
  await page.getByText('The job did not exist yet').waitFor()
  await page.getByRole('link', { name: 'Fire time after' }).click()
  await page.waitForURL(/why=2020-01-01T\d\d:30:00/)
  await page.getByText('The job did not exist yet').waitFor()
})
