// Pictures: the gallery in both themes, bars that open and narrow the runs, the course of a run.
import assert from 'node:assert/strict'
import { axe, overflow, settled, shot } from './browser.mjs'
import { go, made, page, placeOf, says, test } from './world.mjs'

const SCREEN = { width: 1440, height: 900 }
const PHONE = { width: 375, height: 800 }

const theme = (value) => page.evaluate((name) => localStorage.setItem('carillon.theme', name), value)

test('every picture and every state in both themes and on a phone', async () => {
  for (const [size, name] of [[SCREEN, 'wide'], [PHONE, 'phone']]) {
    await page.setViewportSize(size)
    for (const mode of ['dark', 'light']) {
      await theme(mode)
      await go('/dev/gallery')
      await page.getByRole('region', { name: 'Gantt' }).locator('.plot').first().waitFor()
      assert.equal(await overflow(page), 0, `${name} ${mode}`)
      assert.deepEqual(await axe(page), [], `${name} ${mode}`)
      await shot(page, `gallery-${name}-${mode}`)
    }
  }
  await page.setViewportSize(SCREEN)
})

test('the side bar does not lead to the gallery, and no other page loads it', async () => {
  const asked = []
  const note = (request) => asked.push(request.url())
  page.on('request', note)
  await go('/overview')
  page.off('request', note)
  assert.equal(await page.getByRole('link', { name: 'Gallery of parts' }).count(), 0)
  assert.deepEqual(asked.filter((url) => url.includes('/GalleryPage-')), [])
})

test('an hour of the overview opens its runs, and the address has the hour', async () => {
  await go('/overview')
  const bars = page.getByRole('button', { name: /^Runs by hour:/ })
  await bars.focus()
  await page.keyboard.press('End')
  await says(page.locator('.plot-readout').first(), /\d\d:\d\d–\d\d:\d\d America\/New_York: /)
  await settled(page)
  await shot(page, 'overview-bars')
  assert.deepEqual(await axe(page), [])
  await page.keyboard.press('Enter')
  await page.waitForURL((url) => placeOf(url.toString()) === '/runs')
  const { searchParams } = new URL(page.url())
  assert.equal(Date.parse(searchParams.get('to')) - Date.parse(searchParams.get('from')), 3_600_000)
})

test('a drag above the runs narrows them, and Back takes it back', async () => {
  await go('/runs')
  const bars = page.getByRole('button', { name: /^Runs by hour:/ })
  const box = await bars.boundingBox()
  const y = box.y + box.height / 3
  await page.mouse.move(box.x + box.width * 0.7, y)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.8, y, { steps: 4 })
  await page.mouse.move(box.x + box.width - 14, y, { steps: 4 })
  await page.mouse.up()
  await page.waitForURL((url) => url.searchParams.has('from') && url.searchParams.has('to'))
  await page.locator('.chosen').waitFor()
  await settled(page)
  await shot(page, 'runs-brush')
  assert.deepEqual(await axe(page), [])
  await page.goBack()
  await page.waitForURL((url) => !url.searchParams.has('from'))
})

test('dots of a job select its runs with the keyboard', async () => {
  await go(made.job)
  const plot = page.getByRole('button', { name: /^Durations of 7 days/ })
  await plot.focus()
  await page.keyboard.press('End')
  await page.keyboard.press('Shift+Home')
  await page.keyboard.press('Enter')
  await page.waitForURL((url) => url.searchParams.has('from'))
  await page.getByRole('region', { name: /^Runs from / }).getByRole('row').nth(1).waitFor()
  await settled(page)
  await shot(page, 'job-dots')
  assert.deepEqual(await axe(page), [])
  await page.getByRole('button', { name: 'All times' }).click()
  await page.waitForURL((url) => !url.searchParams.has('from'))
})

test('the course of a run is read by keys, and the run is compared with the last good one', async () => {
  await go(made.run)
  const plot = page.getByRole('button', { name: /^Course of the run/ })
  await plot.focus()
  await page.keyboard.press('Home')
  await says(page.locator('.plot-readout'), /^Attempt 1 · /)
  await page.getByText('Comparison with the last good run').waitFor()
  await settled(page)
  await shot(page, 'run-course')
  assert.deepEqual(await axe(page), [])
  assert.equal(await overflow(page), 0)
})
