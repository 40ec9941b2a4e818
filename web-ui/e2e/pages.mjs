// Accessibility, languages and narrow screens of every page.
import assert from 'node:assert/strict'
import { overflow, settled, shot } from './browser.mjs'
import { axeTest, edits, nameOf, own, PAGES } from './everypage.mjs'
import { dataOf, foreign } from './words.mjs'
import { go, heading, page, test } from './world.mjs'

const RAW_KEY = /\b(nav|jobs|runs|errors|action|list|field|overview|executors|tokens|alerts|deliveries|explain|why|backfill|calendars|scripts|callbacks|connections|limits|quotas|cluster|users|invitations|keys|time|unit|schemaForm|denials|refusals|proposals|timers|tenants|deleted)\.[a-zA-Z_]+(\.[a-zA-Z_]+)?\b/

const THINGS = 'run|job|line|handler|field|instance|attempt|proposal|operation|executor|fire time'
/** "1 runs" and "2 run". */
const WRONG_NUMBER = new RegExp(`(?<![\\d.,:/-])(1 (${THINGS})s|([2-9]|\\d{2,}) (${THINGS}))\\b(?![-\\w])`)

/** Buttons that open a dialog, by the beginning of their names in both languages. */
const DIALOGS = {
  '/jobs': ['Run now', '立即运行'],
  '/timers': ['Cancel timer', '取消定时器'],
  '/executors': ['New executor', '新建执行器'],
  '/settings/integrations/connections': ['Change', '修改'],
  '/settings/integrations/scripts': ['Edit', '修改'],
  '/settings/limits': ['Change quota', '修改配额'],
  '/alerts': ['Silence', '静默'],
  '/settings/notifications/silences': ['New silence', '新建静默'],
  '/settings/cluster': ['Start for the tenant', '对租户开始'],
  '/settings/people/users': ['New user', '新建用户'],
  '/settings/people/api-keys': ['New API key', '新建 API 密钥'],
  '/settings/tenants': ['New tenant', '新建租户'],
}

/** Every page, and a dialog of each list, says all in one language; `column` is the language's place in DIALOGS. */
async function speaks(lang, column) {
  const data = dataOf(page)
  const bad = []
  let dialogs = 0
  const note = async (where) => {
    const body = await page.locator('body').innerText()
    if (RAW_KEY.test(body)) bad.push(`${where}: ${RAW_KEY.exec(body)[0]}`)
    if (lang === 'en' && WRONG_NUMBER.test(body)) bad.push(`${where}: ${WRONG_NUMBER.exec(body)[0]}`)
    for (const text of await foreign(page, lang, data)) bad.push(`${where}: ${text}`)
  }
  for (const path of [...PAGES, ...own(), ...edits()]) {
    await go(path)
    assert.equal(await page.evaluate(() => document.documentElement.lang), lang)
    await note(path)
    await shot(page, `${lang}${nameOf(path)}`)
    if (!DIALOGS[path]) continue
    const button = page.locator('main').getByRole('button', { name: new RegExp(`^${DIALOGS[path][column]}`) }).first()
    if ((await button.count()) === 0) continue // its list has no item
    await button.click()
    await page.getByRole('dialog').waitFor()
    await settled(page)
    await note(`${path}, ${DIALOGS[path][column]}`)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    dialogs++
  }
  assert.deepEqual(bad, [])
  assert.ok(dialogs >= 8, `${dialogs} dialogs`)
}

axeTest('light')
axeTest('dark')
test('no page says anything in Chinese while it is in English', () => speaks('en', 0))

test('the language changes without a reload, and then no page says anything in English', async () => {
  await go('/jobs')
  await page.evaluate(() => {
    window.marker = 'same page'
  })
  await page.getByRole('button', { name: 'Language' }).click()
  await page.getByText('中文').click()
  await heading('任务').waitFor()
  assert.equal(await page.evaluate(() => window.marker), 'same page')
  await speaks('zh', 1)
})

/** The calendar of a date field: its year, month and days are texts of the component library. */
async function calendarSays(button, pattern) {
  await go('/calendars/new')
  await page.getByRole('button', { name: button }).first().click()
  const panel = page.locator('.ant-picker-panel').first()
  if (!(await panel.isVisible())) await page.locator('.ant-picker-input input').first().click()
  await panel.waitFor()
  assert.match((await panel.innerText()).replace(/\s+/g, ' '), pattern)
  await page.keyboard.press('Escape')
}

test('the calendar of a date field follows the language, and the way back needs no reload either', async () => {
  await calendarSays('插入日期', /\d{4}年 *\d+月.*一 二 三/)
  await page.getByRole('button', { name: '语言' }).click()
  await page.getByText('English').click()
  await page.getByRole('button', { name: 'Language' }).waitFor()
  assert.equal(await page.evaluate(() => document.documentElement.lang), 'en')
  await calendarSays('Insert days', /[A-Z][a-z]{2} *\d{4}.*Mo Tu We/)
})

test('no page scrolls sideways at 375 px', async () => {
  await page.setViewportSize({ width: 375, height: 800 })
  for (const path of [...PAGES, ...own()]) {
    await go(path)
    assert.ok((await overflow(page)) <= 0, path)
    await shot(page, `narrow${nameOf(path)}`)
  }
  await page.getByRole('button', { name: 'Open navigation' }).click()
  await page.getByRole('dialog').getByRole('link', { name: 'Jobs' }).click()
  await heading('Jobs').waitFor()
  await page.setViewportSize({ width: 1360, height: 850 })
})
