// The keyboard: where the focus is, that it is seen, and that it comes back.
import assert from 'node:assert/strict'
import { settled } from './browser.mjs'
import { go, heading, made, page, test } from './world.mjs'

const button = (name) => page.getByRole('button', { name }).first()
const isFocused = (locator) => locator.evaluate((one) => one === document.activeElement)
/** Waits until the element has the focus. */
async function focused(locator, what) {
  const element = await locator.elementHandle()
  await page.waitForFunction((one) => one === document.activeElement, element).catch(async () => {
    const active = await page.evaluate(() => document.activeElement.outerHTML.slice(0, 120))
    assert.fail(`${what}: the focus is on ${active}`)
  })
}

/** Of what has the focus: what it is, where it lies, whether a ring is around it or around what holds it, and whether it can be seen. */
function look() {
  const at = document.activeElement
  if (at === document.body) return null
  const rings = (one, pseudo) => {
    const style = getComputedStyle(one, pseudo)
    return (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== 'none'
  }
  const around = [at, at.nextElementSibling, at.parentElement, at.parentElement.parentElement, at.parentElement.parentElement.parentElement, at.closest('.editor-box'), at.closest('.ant-select')]
  const box = (at.closest('.ant-select, .ant-input-affix-wrapper, label, .ant-picker') ?? at).getBoundingClientRect()
  const covers = ['.topbar', '.form-foot'].map((one) => document.querySelector(one)).filter((one) => one && !one.contains(at) && !at.matches('.skip-link')) // it lies over the bar
  const covered = covers.some((one) => {
    const bar = one.getBoundingClientRect()
    return box.top < bar.bottom - 1 && box.bottom > bar.top + 1 && box.left < bar.right && box.right > bar.left
  })
  at.dataset.stop ??= String(Math.random())
  return {
    key: at.dataset.stop,
    name: `${at.tagName} ${at.id || at.getAttribute('aria-label') || at.textContent.slice(0, 40)}`,
    ring: around.some((one) => one && (rings(one) || rings(one, '::before') || rings(one, '::after'))),
    covered,
    inForm: Boolean(at.closest('form')),
    y: Math.round(box.top + window.scrollY),
    foot: Boolean(at.closest('.form-foot')),
  }
}

/** Goes through the page with Tab until it ends or begins again. */
async function stops() {
  const out = []
  for (;;) {
    await page.keyboard.press('Tab')
    const one = await page.evaluate(look)
    if (!one || out.some((before) => before.key === one.key)) return out
    out.push(one)
  }
}

test('the first stop leads past the navigation', async () => {
  await go('/jobs')
  await page.keyboard.press('Tab')
  const skip = page.getByRole('link', { name: 'Skip to content' })
  assert.ok(await isFocused(skip))
  assert.ok((await skip.boundingBox()).y >= 0, 'it is seen')
  await page.keyboard.press('Enter')
  await focused(page.locator('#content'), 'skip link')
  await page.keyboard.press('Tab')
  assert.ok(await page.evaluate(() => document.activeElement.closest('#content') !== null))
})

test('after a page change the focus is on the heading, without a ring: nothing can be done there', async () => {
  await go('/jobs')
  await page.getByRole('navigation').getByRole('link', { name: 'Runs' }).focus()
  await page.keyboard.press('Enter')
  await focused(heading('Runs'), 'page change')
  assert.equal((await page.evaluate(look)).ring, false)
  await page.goBack()
  await focused(heading('Jobs'), 'Back')
})

test('a dialog begins at its first field, and gives the focus back to what opened it', async () => {
  const dialogs = [
    ['/jobs', /^Run now/, /INPUT/],
    [made.job, 'Run now', /INPUT/],
    [made.job, 'Pause', /BUTTON.*Pause/],
    [`${made.job}/runs`, 'New backfill', /INPUT/],
    ['/settings/limits', /Set a limit/, /INPUT limit-max/],
    ['/executors', 'New executor', /INPUT/],
    ['/settings/people/users', 'New user', /INPUT username/],
    ['/settings/people/api-keys', 'New API key', /INPUT name/],
    ['/settings/people/api-keys', /^Revoke/, /BUTTON.*Cancel/],
    ['/settings/tenants', 'New tenant', /INPUT name/],
    ['/settings/integrations/scripts', 'Change', /INPUT/],
  ]
  for (const [path, name, begins] of dialogs) {
    await go(path)
    const opener = button(name)
    await opener.focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.waitFor()
    await page.waitForFunction(() => document.activeElement.matches('[role=dialog] :is(input, button:not(.ant-modal-close), [contenteditable])'))
    const at = await page.evaluate(look)
    assert.match(at?.name ?? 'nothing', begins, `${path} ${name}`)
    assert.ok(at.ring, `${path} ${name}`)
    await settled(page)
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'hidden' })
    await focused(opener, `${path} ${name}`)
  }
})

test('a menu is worked with the arrow keys; what it opens returns to its button', async () => {
  await go(made.job)
  const more = button(/^More actions/)
  const item = (name) => page.getByRole('menuitem', { name })
  await more.focus()
  await page.keyboard.press('Enter')
  await focused(item('Edit'), 'menu')
  await page.keyboard.press('Escape')
  await focused(more, 'Escape from the menu')
  await page.keyboard.press('Enter')
  await focused(item('Edit'), 'menu again')
  await page.keyboard.press('ArrowDown')
  await focused(item('Delete'), 'arrow down')
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog')
  await focused(dialog.getByRole('button', { name: 'Cancel' }), 'the question')
  await settled(page)
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  await focused(more, 'after the question')
})

for (const [path, size] of [['/jobs/new', { width: 1360, height: 850 }], ['/jobs/new', { width: 390, height: 844 }], ['/runs', { width: 1360, height: 850 }], ['/settings/cluster', { width: 1360, height: 850 }]]) {
  test(`every stop of ${path} at ${size.width} px has a ring and lies free; a form goes from top to bottom`, async () => {
    await page.setViewportSize(size)
    await go(path)
    const all = await stops()
    assert.ok(all.length > 10)
    assert.deepEqual(all.filter((one) => !one.ring).map((one) => one.name), [], 'without a ring')
    assert.deepEqual(all.filter((one) => one.covered).map((one) => one.name), [], 'covered')
    const fields = all.filter((one) => one.inForm && !one.foot)
    const back = fields.filter((one, i) => i > 0 && one.y < fields[i - 1].y - 40)
    assert.deepEqual(back.map((one) => one.name), [], 'further up than the stop before')
    await page.setViewportSize({ width: 1360, height: 850 })
  })
}

test('the navigation of narrow screens gives the focus back', async () => {
  await page.setViewportSize({ width: 390, height: 844 })
  await go('/jobs')
  const open = button('Open navigation')
  await open.focus()
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  await settled(page)
  await page.keyboard.press('Escape')
  await focused(open, 'navigation')
  await page.setViewportSize({ width: 1360, height: 850 })
})
