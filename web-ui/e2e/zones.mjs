// A viewer in UTC−5, a job in Asia/Shanghai, a server in any zone: each place tells the same instant, and names its zone.
import assert from 'node:assert/strict'
import { client } from './api.mjs'
import { env, newPage, settled, shot } from './browser.mjs'
import { browser, jobName, says, signIn, test } from './world.mjs'

const VIEWER = 'America/Bogota'
const JOB = 'Asia/Shanghai'

/** "2026-11-30 02:00" of an instant in a zone. */
const wall = (at, zone) => {
  const parts = Object.fromEntries(new Intl.DateTimeFormat('en-CA', { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).formatToParts(new Date(at)).map((one) => [one.type, one.value]))
  return `${parts.year}-${parts.month}-${parts.day} ${parts.hour}:${parts.minute}`
}

test('list, hover, next fires, axis, filter and the API agree about an instant; each names its zone', async () => {
  const call = await client(env.url, env.password, env.user)
  const name = `${jobName}-zone`
  const { items: [executor] } = await call('GET', `/executors?q=${env.executor}`)
  const { items: handlers } = await call('GET', `/executors/${executor.id}/handlers`)
  const handler = handlers.find((one) => one.name === env.handler) ?? handlers[0]
  const job = await call('POST', '/jobs?allowUnfitInput=true', { name, executor: { id: executor.id }, handler: handler.name, schedule: { kind: 'cron', expr: '0 0 2 * * *', zone: JOB } })
  const next = (await call('GET', `/jobs/${job.id}`)).nextFireAt
  assert.match(wall(next, JOB), / 02:00$/)
  assert.match(wall(next, VIEWER), / 13:00$/)

  const viewer = await newPage(browser, { timezoneId: VIEWER })
  viewer.expect(/401.*\/auth\/refresh/)
  const { page } = viewer
  await signIn(page, env.password)
  await page.waitForURL('**/overview')
  await says(page.locator('main'), /America\/Bogota/)

  await page.goto(`${env.url}/jobs?q=${name}`)
  const row = page.getByRole('row').filter({ hasText: name })
  await row.waitFor()
  await says(row, /daily 02:00 Shanghai/)
  const time = row.locator(`time[datetime="${next}"]`).first()
  await time.waitFor()
  await time.hover()
  const tip = page.getByRole('tooltip').filter({ hasText: 'UTC' })
  await tip.waitFor()
  for (const zone of [VIEWER, 'UTC', JOB]) await says(tip, new RegExp(`${wall(next, zone)}[\\s\\S]*${zone}|${zone}[\\s\\S]*${wall(next, zone)}`))
  await shot(page, 'zones-hover')

  await page.goto(`${env.url}/jobs/${job.id}`)
  await says(page.locator('main'), new RegExp(`${JOB}[\\s\\S]*${VIEWER}[\\s\\S]*${wall(next, JOB)}:00 · ${wall(next, VIEWER).slice(5)}:00`))
  await settled(page)
  await shot(page, 'zones-job')

  // A filter by wall times of the viewer asks for the instant.
  const run = await call('POST', `/jobs/${job.id}/run`, { ...(handler.example !== undefined && { input: handler.example }) })
  const from = new Date(Math.floor(Date.parse(run.fireAt) / 60_000) * 60_000).toISOString()
  await page.goto(`${env.url}/runs?q=${name}&from=${from}`)
  await page.getByRole('row').filter({ hasText: name }).first().waitFor()
  const begin = page.locator('.ant-picker input').first()
  await begin.waitFor()
  assert.ok((await begin.inputValue()).startsWith(wall(from, VIEWER)))
  await page.goto(`${env.url}/runs?q=${name}&from=${new Date(Date.parse(from) + 60_000).toISOString()}`)
  await page.getByText('Nothing matches these filters').waitFor()
  assert.deepEqual(viewer.errors, [])
  await viewer.context.close()
  await call('DELETE', `/jobs/${job.id}`)
})
