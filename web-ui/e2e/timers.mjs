// Timers: the list, a search by key, one that explains itself, a cancel.
import assert from 'node:assert/strict'
import { axe, env, settled, shot } from './browser.mjs'
import { choose, go, heading, jobName, page, says, test } from './world.mjs'

const read = async (answer) => {
  assert.ok(answer.ok, `${answer.url}: ${answer.status}`)
  return answer.json()
}
const headers = (token) => ({ 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) })
const get = async (path, token) => read(await fetch(`${env.url}/api/v1${path}`, { headers: headers(token) }))
const post = async (path, body, token) => read(await fetch(`${env.url}/api/v1${path}`, { method: 'POST', headers: headers(token), body: JSON.stringify(body) }))

test('timers are listed, found by key, explained, and cancelled after a question', async () => {
  const { accessToken } = await post('/auth/login', { username: env.user, password: env.password })
  const { items } = await get('/executors', accessToken)
  let target
  for (const { id, name } of items) {
    const { items: handlers } = await get(`/executors/${id}/handlers`, accessToken)
    if (handlers.some((one) => one.name === env.handler)) target = { executor: name, handler: env.handler }
  }
  const key = (n) => `${jobName}/${n}`
  for (const n of [1, 2]) await post('/timers', { ...target, key: key(n), after: '48h', note: 'unpaid', labels: ['smoke'], input: {} }, accessToken)

  await go('/overview')
  await page.getByRole('navigation').getByRole('link', { name: 'Timers' }).click()
  await heading('Timers').waitFor()
  await page.getByLabel('Search by the beginning of the key').fill(key(1))
  await page.waitForURL(/keyPrefix=/)
  await page.getByRole('button', { name: key(2), exact: true }).waitFor({ state: 'detached' })
  await settled(page)
  await shot(page, 'timers')
  assert.deepEqual(await axe(page), [])

  await page.getByRole('button', { name: key(1), exact: true }).click()
  const detail = page.getByRole('dialog')
  await says(detail, /Pending/)
  for (const text of [`${target.executor}/${target.handler}`, env.user, 'unpaid', 'smoke', 'none before its time']) await detail.getByText(text, { exact: true }).waitFor()
  await settled(page)
  await shot(page, 'timer')
  assert.deepEqual(await axe(page), [])
  await detail.getByRole('button', { name: 'Cancel timer' }).click()
  const question = page.getByRole('dialog').filter({ hasText: 'It will not run.' })
  await question.waitFor()
  await settled(page) // a click on a dialog that still moves may miss
  await question.getByRole('button', { name: 'Cancel timer' }).click()
  await page.getByText('The timer was cancelled').waitFor()
  await page.getByText('Nothing matches in the list “Pending”').waitFor()

  await page.getByRole('button', { name: 'Search in “Ended”' }).click()
  await page.waitForURL(/state=ended/)
  await page.getByRole('button', { name: key(1), exact: true }).click()
  await page.getByRole('dialog').getByText(new RegExp(`It was cancelled: .*${env.user}`)).waitFor()
  await settled(page)
  await shot(page, 'timer-cancelled')
  await page.getByRole('dialog').getByRole('link').click()
  await page.waitForURL(/\/runs\/\d+$/)
  await heading(/timer:/).waitFor()
  await post('/timers/cancel', { ...target, keys: [key(2)] }, accessToken)

  await go('/timers')
  await page.getByText('How timers have ended').click()
  const statistics = page.getByRole('table', { name: 'How timers have ended' })
  await says(statistics, /All[^]*\d{4}-\d\d-\d\d[^:]*2/)
  await choose('Time span', 'Last 24 hours, by hour')
  await says(statistics, /All[^]*\d\d:00/)
  await settled(page)
  await shot(page, 'timer-statistics')
  assert.deepEqual(await axe(page), [])
})
