// Jobs: their form, their list, pause, conflicts, why nothing ran.
import assert from 'node:assert/strict'
import { axe, env, settled, shot } from './browser.mjs'
import { choose, go, heading, jobName, made, page, session, test } from './world.mjs'

// One more than a browser's numbers can count.
const LONG = '9007199254740993'

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
  made.job = new URL(page.url()).pathname
  await settled(page)
  await shot(page, 'job')
})

test('an input is filled in as a form of its schema; what the server says stands at the field', async () => {
  await go('/jobs/new')
  session.expect(/422.*\/jobs\b/)
  const name = `${jobName}-form`
  await page.getByLabel('Name', { exact: true }).fill(name)
  await choose('Executor', 'sample-shop')
  await choose('Handler', 'cancel-unpaid')
  await page.getByLabel('Cron expression').fill('0 30 4 * * *')
  const input = page.getByRole('group', { name: 'Input' })
  const order = input.getByLabel('orderId')
  await input.getByText('The order to cancel').waitFor()
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await page.getByRole('dialog').getByText('orderId: is missing').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Back' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await input.getByText('is missing').waitFor()
  await settled(page)
  await shot(page, 'schema-form')
  assert.deepEqual(await axe(page), [])
  await order.fill(LONG)
  assert.equal(await order.getAttribute('aria-invalid'), 'false')
  await input.getByText('JSON', { exact: true }).click()
  assert.match(await input.locator('.cm-content').innerText(), new RegExp(`"orderId": ${LONG}`))
  const sent = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/jobs'))
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  assert.match((await sent).postData(), new RegExp(`"orderId": ${LONG}\\b`))
  await heading(name).waitFor()
  const address = new URL(page.url()).pathname
  await page.getByRole('region', { name: 'Input' }).getByText(LONG).waitFor()

  // A run by hand begins with the job's input.
  await page.getByRole('button', { name: 'Run now' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('orderId').waitFor()
  assert.equal(await dialog.getByLabel('orderId').inputValue(), LONG)
  await settled(page)
  assert.deepEqual(await axe(page), [])
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await dialog.waitFor({ state: 'detached' })
  await go(address)
  await page.getByRole('button', { name: `More actions for ${name}` }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.waitForURL((url) => url.pathname === '/jobs')
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

test('pause and resume', async () => {
  await go(made.job)
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByLabel('Why? Others will see this note.').fill('smoke test')
  await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click()
  await page.getByText('Paused: smoke test').waitFor()
  await shot(page, 'job-paused')
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.locator('h1 .state', { hasText: 'Enabled' }).waitFor()
})

test('a save over somebody else’s change shows the difference and loses nothing', async () => {
  await go(`${made.job}/edit`)
  session.expect(/412.*\/jobs\//)
  const other = await session.context.newPage()
  await other.goto(`${env.url}${made.job}/edit`)
  await other.getByLabel('Description').fill('changed by the other')
  await other.getByRole('button', { name: 'Save' }).click()
  await other.waitForURL((url) => url.pathname === made.job)
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
  await page.waitForURL((url) => url.pathname === made.job)
  await page.getByText('changed by me').waitFor()
  await go(`${made.job}/revisions`)
  assert.match(await page.locator('.diff').first().innerText(), /changed by the other[\s\S]*changed by me/)
})
