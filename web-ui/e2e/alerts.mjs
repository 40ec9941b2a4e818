// Alerts: an incident is seen, taken on and silenced; what was told is listed.
import assert from 'node:assert/strict'
import { axe, env, settled, shot } from './browser.mjs'
import { choose, go, heading, jobName, made, page, placeOf, says, session, test } from './world.mjs'

const name = `${jobName}-alert`

/** Calls the API beside the pages, as the same person. */
async function call(path, token, body, method = body ? 'POST' : 'GET') {
  const answer = await fetch(`${env.url}/api/v1${path}`, {
    method,
    headers: { 'Content-Type': 'application/json', ...(token ? { Authorization: `Bearer ${token}` } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  const text = await answer.text()
  assert.ok(answer.ok, `${path}: ${answer.status} ${text}`)
  return text ? JSON.parse(text) : undefined
}

test('a run that ends badly is an incident, first in its list', async () => {
  const { accessToken: token } = await call('/auth/login', '', { username: env.user, password: env.password })
  const { items } = await call('/executors?q=sample-shop', token)
  const job = await call(
    '/jobs',
    token,
    { name, executor: { id: items[0].id }, handler: 'export-archive', schedule: { kind: 'none' }, timeout: '1s', retry: { maxAttempts: 1 }, owner: { name: 'Smoke', email: 'smoke@example.com' }, alert: { onFailure: true } },
  )
  await call(`/jobs/${job.id}/run`, token, {})
  await go('/overview')
  await page.getByRole('navigation').getByRole('link', { name: 'Alerts' }).click()
  await heading('Alerts').waitFor()
  const row = page.getByRole('row').filter({ hasText: name })
  await row.waitFor()
  await says(row, /Run timed out[^]*Open/)
  await settled(page)
  await shot(page, 'alerts')
  assert.deepEqual(await axe(page), [])
  await row.getByRole('link', { name: 'Run timed out' }).click()
  await heading(/Run timed out/).waitFor()
  made.incident = placeOf(page.url())
  await page.getByRole('region', { name: 'Its events, newest first' }).getByRole('link').first().waitFor()
  // A job without channels of its own is told by mail, which the demo has no server for.
  await says(page.getByRole('region', { name: 'Who was told' }), /smoke@example\.com/)
  await settled(page)
  await shot(page, 'incident')
  assert.deepEqual(await axe(page), [])
})

test('an incident is taken on, silenced and ended', async () => {
  await page.getByRole('button', { name: /^Acknowledge/ }).click()
  await page.getByRole('button', { name: /^Acknowledge/ }).waitFor({ state: 'detached' })
  await says(page.getByRole('region', { name: 'Incident', exact: true }), /Taken on by[^]*admin/)
  await page.getByRole('button', { name: /^Silence/ }).click()
  const dialog = page.getByRole('dialog')
  await says(dialog, new RegExp(`Run timed out[^]*${name}`))
  await dialog.getByRole('button', { name: 'Silence' }).click()
  await dialog.getByText('Required').waitFor()
  await settled(page)
  await shot(page, 'silence')
  assert.deepEqual(await axe(page), [])
  await dialog.getByLabel('Reason').fill(`deploy of ${name}`)
  await dialog.getByRole('button', { name: 'Silence' }).click()
  await dialog.waitFor({ state: 'detached' })

  await go('/settings/notifications/silences')
  const row = page.getByRole('row').filter({ hasText: `deploy of ${name}` })
  await says(row, new RegExp(`Run timed out[^]*${name}[^]*on[^]*admin`))
  await settled(page)
  await shot(page, 'silences')
  await row.getByRole('button', { name: /^End/ }).click()
  await settled(page) // a click on a dialog that still moves may miss
  await page.getByRole('dialog').getByRole('button', { name: 'End' }).click()
  await row.waitFor({ state: 'detached' })
  await page.getByRole('checkbox', { name: 'Show those that are over' }).check()
  await says(row, /ended by admin/)

  await go(made.incident)
  await page.getByRole('button', { name: 'Resolve', exact: true }).click()
  await settled(page)
  await page.getByRole('dialog').getByRole('button', { name: 'Resolve', exact: true }).click()
  await says(page.getByRole('region', { name: 'Incident', exact: true }), /Ended[^]*admin/)
  await go('/alerts?state=resolved')
  await page.getByRole('row').filter({ hasText: name }).waitFor()
})

test('deliveries are listed by state and lead to their incident', async () => {
  await go('/settings/notifications/deliveries')
  const row = page.getByRole('row').filter({ hasText: 'smoke@example.com' }).first()
  await row.waitFor()
  await row.getByRole('link', { name: 'Run timed out' }).click()
  await page.waitForURL(`**${made.incident}`)
})

test('a channel is made, previewed, tried with the answer shown, and keeps its keys', async () => {
  session.expect(/422.*\/alert-channels/)
  await go('/settings/notifications/channels')
  await page.getByText('No channel yet').waitFor()
  await page.getByRole('link', { name: 'New channel' }).click()
  await page.getByLabel('Name', { exact: true }).fill(`${name}-hook`)
  await choose('Kind', 'Webhook')
  await page.getByLabel('Address', { exact: true }).fill('http://127.0.0.1:9/hook?key=of-the-hook')
  await page.getByLabel('Signing secret').fill('s3cret-of-hook')
  const preview = page.getByRole('region', { name: 'Preview' })
  await page.getByLabel('Body of the request').fill('{"text": {{.Title}}}')
  await preview.getByRole('button', { name: 'Show' }).click()
  await page.locator('.ant-form-item-explain-error').first().waitFor()
  await settled(page)
  await shot(page, 'channel-new')
  assert.deepEqual(await axe(page), [])
  await page.getByLabel('Body of the request').fill('{"text": {{json .Title}}}')
  await preview.getByRole('button', { name: 'Show' }).click()
  await says(preview.getByRole('region', { name: 'Body' }), /"text": "[^"]+"/)
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  const row = page.getByRole('row').filter({ hasText: `${name}-hook` })
  await says(row, /Webhook[^]*http:\/\/127\.0\.0\.1:9/)
  assert.doesNotMatch(await page.content(), /of-the-hook|s3cret/)
  await row.getByRole('button', { name: /^Send test/ }).click()
  await says(page.getByRole('dialog'), /Not delivered[^]*may not be reached/)
  await settled(page)
  await shot(page, 'channel-test')
  assert.deepEqual(await axe(page), [])
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().click()
  await row.getByRole('link').click()
  await heading(/Edit/).waitFor()
  made.channel = placeOf(page.url())
  await page.getByText('Stored: http://127.0.0.1:9').waitFor()
  assert.equal(await page.getByRole('textbox', { name: 'Signing secret' }).inputValue(), '')
})

test('a rule is refused at its field, says what it does, and the default channels are named', async () => {
  session.expect(/422.*\/alert-rules/)
  await go('/settings/notifications/rules')
  await page.getByRole('link', { name: 'New rule' }).click()
  await page.getByLabel('Name', { exact: true }).fill(`${name}-rule`)
  await choose('Tells', 'A run takes too long')
  await page.getByLabel('After', { exact: true }).fill('soon')
  await choose('Channels', `${name}-hook`)
  await page.keyboard.press('Escape')
  await page.getByLabel('Labels of jobs').fill('team=finance')
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await page.getByText('must be a duration such as 30m').waitFor()
  await settled(page)
  await shot(page, 'rule-new')
  assert.deepEqual(await axe(page), [])
  await page.getByLabel('After', { exact: true }).fill('10m')
  await says(page.getByRole('region', { name: 'What it says' }), new RegExp(`team=finance[^]*longer than 10 m[^]*${name}-hook`))
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  const row = page.getByRole('row').filter({ hasText: `${name}-rule` })
  await says(row, /team=finance[^]*longer than 10 m[^]*Warning/)
  made.rule = placeOf(await row.getByRole('link').getAttribute('href'))

  const card = page.getByRole('region', { name: 'Defaults' })
  await says(card, /nobody is told of jobs that name nobody/)
  await card.getByRole('button', { name: 'Edit' }).click()
  await settled(page) // a click on a dialog that still moves may miss
  await choose('Default channels', `${name}-hook`)
  await page.getByRole('dialog').getByText('Defaults', { exact: true }).click() // Tab would take the choice back
  await page.getByRole('checkbox', { name: 'Quiet hours' }).check()
  await settled(page)
  await shot(page, 'alert-defaults')
  assert.deepEqual(await axe(page), [])
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await says(card, new RegExp(`${name}-hook[^]*22:00–07:00`))
  await shot(page, 'rules')
})

test('a rule tells of successes', async () => {
  await go('/settings/notifications/rules')
  await page.getByRole('link', { name: 'New rule' }).click()
  await page.getByLabel('Name', { exact: true }).fill(`${name}-success`)
  await says(page.getByRole('region', { name: 'What it says' }), /all that goes wrong/)
  await choose('Kinds', 'Run succeeded')
  await page.keyboard.press('Escape')
  await page.getByLabel('Labels of jobs').fill(`smoke=${name}`)
  await says(page.getByRole('region', { name: 'What it says' }), /Run succeeded/)
  await settled(page)
  await shot(page, 'rule-success')
  assert.deepEqual(await axe(page), [])
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  const row = page.getByRole('row').filter({ hasText: `${name}-success` })
  await says(row, /Run succeeded/)

  const { accessToken: token } = await call('/auth/login', '', { username: env.user, password: env.password })
  const { items } = await call('/executors?q=sample-shop', token)
  const job = await call(
    '/jobs',
    token,
    { name: `${name}-well`, labels: { smoke: name }, executor: { id: items[0].id }, handler: 'open-count', schedule: { kind: 'fixed_rate', every: '1s' }, owner: { name: 'Smoke', email: 'smoke@example.com' } },
  )
  // A node hears of a rule within 2 s; a success before is told to nobody.
  await go('/alerts?state=all')
  const incident = page.getByRole('row').filter({ hasText: `${name}-well` })
  await says(incident, /Run succeeded/)
  await settled(page)
  await shot(page, 'incident-success')
  await call(`/jobs/${job.id}`, token, undefined, 'DELETE')
})
