// Smoke test of the pages in real Chromium against a running product with an
// executor online. Settings by CARILLON_E2E_* variables: see browser.mjs.
// The steps build on each other, in the order in which a person would go.
import assert from 'node:assert/strict'
import { after, before, test as nodeTest } from 'node:test'
import { axe, env, launch, newPage, overflow, settled, shot } from './browser.mjs'

const jobName = `e2e-smoke-${Date.now().toString(36)}`
let browser
let session
let page
let jobUrl
let runUrl
let calendarUrl

// The step that failed first: those after it would only wait for what never comes.
let broken = ''

function test(name, step) {
  nodeTest(name, async () => {
    if (broken) throw new Error(`not run: the step "${broken}" failed`)
    try {
      await step()
    } catch (err) {
      broken = name
      await shot(page, 'failed').catch(() => {})
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

const go = async (path) => {
  await page.goto(env.url + path)
  await settled(page)
}
const heading = (name) => page.getByRole('heading', { level: 1, name })

/** Chooses options of a select by their texts; without a text, the first one. */
async function choose(name, ...texts) {
  const box = page.getByRole('combobox', { name })
  await box.click()
  // Other lists, closed before, stay in the page: this is the one of the box.
  const popup = page.locator(`.ant-select-dropdown:has([id="${await box.getAttribute('aria-controls')}"])`)
  for (const text of texts) await popup.locator('.ant-select-item-option', text ? { hasText: text } : undefined).first().click()
}

async function signIn(target, password, user = env.user) {
  await target.goto(`${env.url}/login`)
  await target.getByLabel('User name').fill(user)
  await target.getByLabel('Password', { exact: true }).fill(password)
  await target.getByRole('button', { name: 'Sign in', exact: true }).click()
}

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

test('the cron preview shows the fault at its place, and the next ten fires', async () => {
  await go('/jobs/new')
  session.expect(/422.*\/schedules\/preview/)
  const expr = page.getByLabel('Cron expression')
  await expr.fill('0 0 61 * *')
  await page.locator('.cron-echo mark').waitFor()
  await page.getByRole('alert').getByText('The schedule is not valid.').waitFor()
  await shot(page, 'cron-invalid')
  await expr.fill('0 30 4 * * *')
  await page.locator('.fires li').nth(9).waitFor()
  assert.equal(await page.locator('.fires li').count(), 10)
})

test('create a job', async () => {
  await page.getByLabel('Name', { exact: true }).fill(jobName)
  await choose('Executor', env.executor)
  await choose('Handler', env.handler)
  if (env.input) {
    await page.locator('.cm-content').click()
    await page.keyboard.insertText(env.input)
  } else if (await page.getByText('What the handler expects').isVisible()) {
    await page.getByText('What the handler expects').click()
    await page.getByRole('button', { name: 'Insert an example' }).click()
  }
  await page.getByLabel('Owner name').fill('Smoke Test')
  await shot(page, 'job-form')
  assert.deepEqual(await axe(page), [])
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await heading(jobName).waitFor()
  jobUrl = new URL(page.url()).pathname
  await settled(page)
  await shot(page, 'job')
})

test('the job is in the list, with its schedule and next fire', async () => {
  await go(`/jobs?q=${jobName}`)
  const row = page.getByRole('row').filter({ hasText: jobName })
  await row.waitFor()
  const text = await row.innerText()
  assert.match(text, /0 30 4 \* \* \*/)
  assert.match(text, /in \d+/)
  assert.match(text, /Enabled/)
})

test('run now leads to the run page, whose log is live', async () => {
  await page.getByRole('button', { name: `Run now: ${jobName}` }).click()
  const dialog = page.getByRole('dialog')
  await dialog.locator('.cm-content, textarea').first().waitFor()
  await settled(page)
  await shot(page, 'run-now')
  assert.deepEqual(await axe(page), [])
  await dialog.getByRole('button', { name: 'Run', exact: true }).click()
  await page.waitForURL('**/runs/*')
  runUrl = new URL(page.url()).pathname
  await page.locator('.log-line').first().waitFor({ timeout: 30_000 })
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
  await page.locator('h1 .state').filter({ hasText: /Succeeded|Failed|Timed out|Cancelled/ }).waitFor({ timeout: 60_000 })
  await page.getByText('complete').waitFor()
  await settled(page)
  await shot(page, 'run-ended')
  const lines = await page.locator('.log-line').count()
  assert.ok(lines > 0 && lines < 200, `${lines} lines in the page`)
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

test('pause and resume', async () => {
  await go(jobUrl)
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByLabel('Why? Others will see this note.').fill('smoke test')
  await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click()
  await page.getByText('Paused: smoke test').waitFor()
  await shot(page, 'job-paused')
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.locator('h1 .state', { hasText: 'Enabled' }).waitFor()
})

test('a save over somebody else’s change shows the difference and loses nothing', async () => {
  await go(`${jobUrl}/edit`)
  session.expect(/412.*\/jobs\//)
  const other = await session.context.newPage()
  await other.goto(`${env.url}${jobUrl}/edit`)
  await other.getByLabel('Description').fill('changed by the other')
  await other.getByRole('button', { name: 'Save' }).click()
  await other.waitForURL((url) => url.pathname === jobUrl)
  await other.close()
  await page.getByLabel('Description').fill('changed by me')
  await page.getByRole('button', { name: 'Save' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('changed by the other').waitFor()
  await settled(page)
  await shot(page, 'conflict')
  assert.deepEqual(await axe(page), [])
  assert.equal(await dialog.getByRole('button', { name: 'Take over into the form' }).isDisabled(), true)
  await dialog.getByRole('radio', { name: /description: Yours/ }).check()
  await dialog.getByRole('button', { name: 'Take over into the form' }).click()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.waitForURL((url) => url.pathname === jobUrl)
  await page.getByText('changed by me').waitFor()
  await go(`${jobUrl}/revisions`)
  assert.match(await page.locator('.diff').first().innerText(), /changed by the other[\s\S]*changed by me/)
})

test('a run says why it came as it did: its steps, and the instances considered', async () => {
  await go(runUrl)
  await page.locator('.explain-summary', { hasText: /^It (ran|was|ended)/ }).waitFor()
  const steps = page.getByRole('table', { name: 'What happened' })
  await steps.getByText('The handler started').waitFor()
  assert.match(await steps.innerText(), /An admin node wrote the run down[\s\S]*Offered to instance[\s\S]*\+ \d/)
  assert.match(await page.getByRole('list', { name: 'Instances considered' }).innerText(), /It was chosen/)
})

test('a job says why nothing ran at a moment, and leads to the next fire time', async () => {
  await go(`${jobUrl}/why`)
  await page.getByRole('button', { name: 'Next fire' }).click()
  await page.getByText('It lies ahead').waitFor()
  await go(`${jobUrl}/why?at=2020-01-01T00:00:00.000Z`)
  await page.getByText('The job did not exist yet').waitFor()
  await page.getByRole('link', { name: 'Fire time after' }).click()
  await page.waitForURL(/at=2020-01-01T\d\d:30:00/)
  await page.getByText('The job did not exist yet').waitFor()
})

/** A date some days from now. */
const inDays = (n) => new Date(Date.now() + n * 86_400_000).toISOString().slice(0, 10)

test('a calendar is written, imported into and kept in versions', async () => {
  await go('/calendars/new')
  await page.getByLabel('Name', { exact: true }).fill(`${jobName}-days`)
  const holidays = page.getByRole('textbox', { name: 'Holidays', exact: true })
  await holidays.fill('the day after tomorrow')
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await page.getByText('Line 1 is not understood').waitFor()
  await holidays.fill(`${inDays(2)}..${inDays(4)} Three days off`)
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await heading(`${jobName}-days`).waitFor()
  calendarUrl = new URL(page.url()).pathname
  await page.getByRole('button', { name: 'Import iCal' }).click()
  const dialog = page.getByRole('dialog')
  const day = inDays(40).replaceAll('-', '')
  await dialog.getByLabel('Text of the file').fill(`BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VEVENT\nUID:1\nDTSTART;VALUE=DATE:${day}\nSUMMARY:Founders' day\nEND:VEVENT\nEND:VCALENDAR\n`)
  await settled(page)
  await shot(page, 'calendar-import')
  assert.deepEqual(await axe(page), [])
  await dialog.getByRole('button', { name: 'Import iCal' }).click()
  await dialog.waitFor({ state: 'detached' })
  const versions = page.getByRole('region', { name: 'Versions' })
  await versions.getByText('Version 2').waitFor()
  assert.match(await versions.innerText(), /added Holidays \d{4}-\d\d-\d\d Founders' day/)
})

test('a job takes a calendar, the preview shows what it takes out, and the calendar stays', async () => {
  await go(`${jobUrl}/edit`)
  await choose('Calendars', `${jobName}-days`)
  await page.keyboard.press('Escape')
  await page.getByText('Calendars take out 3 of these.').waitFor()
  assert.equal(await page.locator('.fires li.taken-out', { hasText: 'Three days off' }).count(), 3)
  await shot(page, 'job-with-calendar')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.waitForURL((url) => url.pathname === jobUrl)
  await go(calendarUrl)
  await page.getByRole('link', { name: jobName, exact: true }).waitFor()
  await page.getByRole('button', { name: 'Delete' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('cannot be deleted').waitFor()
  await settled(page)
  assert.deepEqual(await axe(page), [])
  await dialog.getByRole('button', { name: 'Close' }).last().click()
})

test('a backfill says what it would do, writes its runs, and can be stopped', async () => {
  await go(`${jobUrl}/backfills`)
  await page.getByRole('button', { name: 'New backfill' }).click()
  const dialog = page.getByRole('dialog')
  for (const [label, day] of [['From', -4], ['Up to', -2]]) {
    await dialog.getByLabel(label).fill(`${inDays(day)} 00:00:00`)
    await page.keyboard.press('Enter')
  }
  await dialog.getByText('2 runs would be written').waitFor()
  await settled(page)
  await shot(page, 'backfill-new')
  assert.deepEqual(await axe(page), [])
  await dialog.getByRole('button', { name: 'Write 2 runs' }).click()
  const row = page.getByRole('row').filter({ hasText: 'fire times done with' })
  await row.getByRole('button', { name: 'Stop' }).click()
  await page.getByRole('dialog').getByText('No more runs are written.').waitFor()
  await settled(page)
  await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click()
  await row.getByText('Stopped').waitFor()
})

test('a limit is set and taken away', async () => {
  await go('/limits')
  const row = page.getByRole('row').nth(2)
  const set = async (max) => {
    await row.getByRole('button').click()
    await page.getByRole('dialog').getByLabel('At once, at most').fill(max)
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
  await set('50')
  await row.getByText('/50').waitFor()
  await shot(page, 'limit-set')
  await set('')
  await row.getByText('no limit').waitFor()
})

test('the cluster shows its node with all partitions', async () => {
  await go('/cluster')
  assert.match(await page.getByRole('table', { name: 'Nodes' }).innerText(), /answers you[\s\S]*Live[\s\S]*64/)
  assert.equal(await page.locator('.cell').count(), 64)
})

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
  const count = await page.getByRole('row').count()
  await page.reload()
  await page.getByRole('row').filter({ hasText: jobName }).first().waitFor()
  assert.equal(await page.getByRole('row').count(), count)
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

test('a join token is shown once, with a program to copy', async () => {
  await go('/executors')
  await page.locator('a.exec-card').first().click()
  await page.getByRole('button', { name: 'New join token' }).click()
  await page.getByRole('dialog').getByLabel('Name').fill(jobName)
  await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click()
  await page.getByRole('dialog').getByText('cjt_').waitFor()
  assert.match(await page.getByRole('dialog').innerText(), /executor\.Handle/)
  await settled(page)
  await shot(page, 'join-token')
  assert.deepEqual(await axe(page), [])
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().click()
  await page.getByRole('button', { name: `Revoke: ${jobName}` }).click()
  await settled(page) // a click on a dialog that still moves may miss
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('button', { name: `Revoke: ${jobName}` }).waitFor({ state: 'detached' })
})

test('a new user must choose a password, and a viewer sees no controls', async () => {
  await go('/settings/users')
  await page.getByRole('button', { name: 'New user' }).click()
  const form = page.getByRole('dialog')
  await form.getByLabel('User name').fill(jobName)
  await form.getByRole('button', { name: 'Create' }).click()
  const secret = page.getByRole('dialog').locator('pre')
  await secret.waitFor()
  const first = (await secret.innerText()).trim()
  await settled(page)
  await shot(page, 'user-created')
  assert.deepEqual(await axe(page), [])
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().click()

  const viewer = await newPage(browser)
  viewer.expect(/401.*\/auth\/refresh/)
  await signIn(viewer.page, first, jobName)
  await viewer.page.waitForURL('**/password**')
  await viewer.page.getByLabel('Current password').fill(first)
  await viewer.page.getByLabel('New password', { exact: true }).fill('a password of my own')
  await viewer.page.getByLabel('New password again').fill('a password of my own')
  await settled(viewer.page)
  await shot(viewer.page, 'password')
  assert.deepEqual(await axe(viewer.page), [])
  await viewer.page.getByRole('button', { name: 'Change password' }).click()
  await viewer.page.waitForURL('**/overview')
  await viewer.page.goto(`${env.url}/jobs`)
  await viewer.page.getByRole('row').nth(1).waitFor()
  for (const name of [/^Run now/, /^Pause/, /^More actions/, 'New job']) {
    assert.equal(await viewer.page.getByRole('button', { name }).count(), 0, String(name))
  }
  assert.equal(await viewer.page.getByRole('link', { name: 'Users' }).count(), 0)
  await viewer.page.goto(`${env.url}/jobs/new`)
  await viewer.page.getByText('Your role does not allow this').waitFor()
  assert.deepEqual(viewer.errors, [])
  await viewer.context.close()

  await page.getByRole('button', { name: `Delete: ${jobName}` }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('button', { name: `Delete: ${jobName}` }).waitFor({ state: 'detached' })
})

const PAGES = ['/overview', '/jobs', '/jobs/new', '/runs', '/executors', '/executors?view=table', '/calendars', '/calendars/new', '/limits', '/deliveries', '/cluster', '/settings/users', '/settings/api-keys']
const RAW_KEY = /\b(nav|jobs|runs|errors|action|list|field|overview|executors|tokens|deliveries|explain|why|backfill|calendars|limits|cluster|users|keys|time|unit)\.[a-zA-Z_]+(\.[a-zA-Z_]+)?\b/

/** The pages of what the steps have made. */
const own = () => [jobUrl, `${jobUrl}/why?at=2020-01-01T00:00:00.000Z`, `${jobUrl}/backfills`, runUrl, calendarUrl]

/** "/jobs/73…/revisions" → "-jobs-id-revisions": the same name in every run. */
const nameOf = (path) => path.replace(/\?at=.*/, '').replace(/\d+/g, 'id').replace(/[/?=]/g, '-')

for (const theme of ['light', 'dark']) {
  test(`every page is free of axe violations: ${theme}`, async () => {
    await page.evaluate((value) => localStorage.setItem('carillon.theme', value), theme)
    for (const path of [...PAGES, ...own(), `${jobUrl}/revisions`, `${calendarUrl}/edit`]) {
      await go(path)
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), theme)
      assert.deepEqual(await axe(page), [], path)
      await shot(page, `${theme}${nameOf(path)}`)
    }
  })
}

test('the language changes without a reload, and no page shows a raw key', async () => {
  await go('/jobs')
  await page.evaluate(() => {
    window.marker = 'same page'
  })
  await page.getByRole('button', { name: 'Language' }).click()
  await page.getByText('中文').click()
  await heading('任务').waitFor()
  assert.equal(await page.evaluate(() => window.marker), 'same page')
  assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh')
  for (const path of [...PAGES, ...own()]) {
    await go(path)
    const text = await page.locator('body').innerText()
    assert.doesNotMatch(text, RAW_KEY, path)
    assert.match(text, /租户/, path)
    await shot(page, `zh${nameOf(path)}`)
  }
  await page.getByRole('button', { name: '语言' }).click()
  await page.getByText('English').click()
  await page.getByRole('button', { name: 'Language' }).waitFor()
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

test('delete the job', async () => {
  await go(jobUrl)
  await page.getByRole('button', { name: `More actions for ${jobName}` }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('It will not fire again.').waitFor()
  // Enter must not destroy: the focus stands on the way out.
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Cancel')
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await page.waitForURL((url) => url.pathname === '/jobs')
})

test('sign out leads to the sign-in page and stays there', async () => {
  await page.getByRole('button', { name: `Account of ${env.user}` }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.waitForURL('**/login**')
  await page.goto(`${env.url}/jobs`)
  await page.waitForURL('**/login**')
})

test('the console stayed free of errors', () => {
  assert.deepEqual(session.errors, [])
})
