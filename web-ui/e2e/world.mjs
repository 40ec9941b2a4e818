// What the steps share: the browser, what they have made, and the ways of a
// person: go, choose, sign in.
import assert from 'node:assert/strict'
import { after, before, test as nodeTest } from 'node:test'
import { env, GUARD_MS, launch, newPage, settled, shot } from './browser.mjs'

export const jobName = `e2e-smoke-${Date.now().toString(36)}`
export let browser
/** The page of the administrator, with its console errors. */
export let session
export let page
/** Addresses of what the steps have made: job, run, calendar, script, executor. */
export const made = {}

// The step that failed first: those after it would only wait for what never comes.
let broken = ''

export function test(name, step) {
  nodeTest(name, async () => {
    if (broken) throw new Error(`not run: the step "${broken}" failed`)
    try {
      await step()
    } catch (err) {
      broken = name
      const open = browser.contexts().flatMap((one) => one.pages())
      for (const [i, one] of open.entries()) await shot(one, `failed-${i}`).catch(() => {})
      throw err
    }
  })
}

before(async () => {
  browser = await launch()
  session = await newPage(browser)
  page = session.page
})

after(async () => {
  await browser?.close()
})

export const go = async (path) => {
  await page.goto(env.url + path)
  await settled(page)
}
/** An address as go takes it, without those of the server and the tenant. */
export const placeOf = (url) =>
  new URL(url, env.url).pathname.slice(new URL(`${env.url}/`).pathname.length - 1).replace(/^\/t\/[^/]+/, '')
/** A page that is slow to go may ask once more for what was deleted. */
export const expectGone = (address) => session.expect(new RegExp(`404.*/api/v1${address}\\b`))
export const heading = (name) => page.getByRole('heading', { level: 1, name })

/** Waits until what a person reads there matches; what a page shows first may lack what is still asked for. */
export async function says(locator, pattern) {
  const end = Date.now() + GUARD_MS
  let text
  do {
    text = await locator.innerText()
    if (pattern.test(text)) return
    await locator.page().waitForTimeout(100)
  } while (Date.now() < end)
  assert.match(text, pattern)
}

/** Chooses options of a select by their texts; without a text, the first one. */
export async function choose(name, ...texts) {
  const several = page.getByRole('button', { name: new RegExp(`^${name}: `) })
  if ((await several.count()) > 0 && (await several.getAttribute('aria-expanded')) !== null) {
    await several.click()
    for (const text of texts) await page.getByRole('group', { name }).getByLabel(text, { exact: true }).check()
    return
  }
  const box = page.getByRole('combobox', { name })
  if ((await box.evaluate((one) => one.tagName)) === 'SELECT') {
    await box.selectOption({ label: texts[0] })
    return
  }
  await box.click()
  await box.and(page.locator('[aria-controls]')).waitFor() // the list has its name once it is open
  // Other lists, closed before, stay in the page: this is the one of the box.
  const popup = page.locator(`.ant-select-dropdown:has([id="${await box.getAttribute('aria-controls')}"])`)
  for (const text of texts) await popup.locator('.ant-select-item-option', text ? { hasText: text } : undefined).first().click()
}

export async function signIn(target, password, user = env.user, url = env.url) {
  await target.goto(`${url}/login`)
  await target.getByLabel('User name').fill(user)
  await target.getByLabel('Password', { exact: true }).fill(password)
  await target.getByRole('button', { name: 'Sign in', exact: true }).click()
}

/** A date some days from now. */
export const inDays = (n) => new Date(Date.now() + n * 86_400_000).toISOString().slice(0, 10)
