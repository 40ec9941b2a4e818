// Strips of runs, and lists with one line a row.
import assert from 'node:assert/strict'
import { axe, overflow, settled, shot } from './browser.mjs'
import { go, jobName, made, page, placeOf, says, test } from './world.mjs'

const ROW_PX = 36
const SCREEN = { width: 1440, height: 900 }
const PHONE = { width: 375, height: 800 }
const JOBS_OF_SCREEN = 16
const CARD_PX = 120

const boxes = (selector) => page.locator(selector).evaluateAll((all) => all.map((one) => ({ top: one.getBoundingClientRect().top, height: one.getBoundingClientRect().height })))

test('sixteen jobs fit into 900 px, and each has one line', async () => {
  await page.setViewportSize(SCREEN)
  await go('/jobs')
  await page.getByRole('row').nth(1).waitFor()
  const rows = await boxes('.table.dense tbody tr')
  for (const row of rows) assert.ok(row.height <= ROW_PX + 1, `a row is ${row.height} px high`)
  const end = rows[0].top + JOBS_OF_SCREEN * (ROW_PX + 1)
  assert.ok(end <= SCREEN.height, `sixteen jobs end at ${end} px`)
  await shot(page, 'jobs-dense')
  assert.deepEqual(await axe(page), [])
})

test('the name of a job has its room on each width', async () => {
  for (const width of [800, 1024, 1280, 1440, 1920]) {
    await page.setViewportSize({ width, height: 900 })
    await go('/jobs')
    for (const name of await page.locator('.job-name').all()) {
      const { width: room } = await name.boundingBox()
      assert.ok(room > 40, `${room} px at ${width} px`)
    }
    await shot(page, `jobs-${width}`)
  }
  await page.setViewportSize({ width: 1360, height: 850 })
})

test('the actions of a job appear with the focus', async () => {
  const row = page.getByRole('row').nth(1)
  const actions = row.locator('.actions .row')
  await page.mouse.move(0, 0)
  assert.equal(await actions.evaluate((one) => getComputedStyle(one).opacity), '0')
  await actions.getByRole('button').first().focus()
  assert.equal(await actions.evaluate((one) => getComputedStyle(one).opacity), '1')
  await shot(page, 'jobs-focus')
  assert.deepEqual(await axe(page), [])
})

test('a job on a phone is at most 120 px high', async () => {
  await page.setViewportSize(PHONE)
  await go('/jobs')
  await page.getByRole('row').nth(1).waitFor()
  for (const row of await boxes('.table.dense tbody tr')) assert.ok(row.height <= CARD_PX, `a job is ${row.height} px high`)
  assert.equal(await overflow(page), 0)
  await shot(page, 'jobs-phone')
  assert.deepEqual(await axe(page), [])
  await page.setViewportSize(SCREEN)
})

test('a job begins with how its runs ended; keys read its strip and open a run', async () => {
  await go(made.job)
  await page.getByRole('region', { name: 'How it goes' }).getByText(/Last success|Failed|None of its runs|not yet run/).first().waitFor()
  const strip = page.locator('.peal-strip')
  await strip.waitFor()
  await strip.focus()
  await page.keyboard.press('End')
  const readout = page.locator('.peal-readout')
  await says(readout, /·.*UTC|·.*\//)
  const newest = await readout.innerText()
  await page.keyboard.press('Home')
  await page.keyboard.press('End')
  assert.equal(await readout.innerText(), newest)
  assert.equal(await readout.getAttribute('aria-live'), 'polite')
  await page.getByText('As table: the last').click()
  await page.getByRole('region', { name: 'As table: the last' }).getByRole('row').nth(1).waitFor()
  await settled(page)
  await shot(page, 'job-verdict')
  assert.deepEqual(await axe(page), [])
  await strip.focus()
  await page.keyboard.press('End')
  await page.keyboard.press('Enter')
  await page.waitForURL((url) => placeOf(url.toString()).startsWith('/runs/'))
})

test('runs have one line, with their message', async () => {
  await go(`/runs?q=${jobName}`)
  await page.getByRole('row').nth(1).waitFor()
  await page.getByRole('columnheader', { name: 'Message' }).waitFor()
  for (const row of await boxes('.table.dense tbody tr')) assert.ok(row.height <= ROW_PX + 1, `a row is ${row.height} px high`)
  await shot(page, 'runs-dense')
  assert.deepEqual(await axe(page), [])
})
