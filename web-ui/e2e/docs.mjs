// The reference of the API: for whoever has the address, without a login.
import assert from 'node:assert/strict'
import { axe, env, newPage, settled } from './browser.mjs'
import { browser, test } from './world.mjs'

test('the API reference stands alone, and asks no other host', async () => {
  const { page, context, errors } = await newPage(browser)
  const hosts = new Set()
  page.on('request', (request) => hosts.add(new URL(request.url()).host))
  for (const path of ['/docs', '/api', '/api/docs']) {
    await page.goto(env.url + path)
    await page.getByRole('heading', { level: 1, name: 'API reference' }).waitFor()
  }
  await settled(page)
  await page.getByRole('searchbox', { name: 'Find an operation' }).fill('run-job')
  await page.getByText('1 operation', { exact: true }).waitFor()
  await page.getByText('Run a job now, or once later').click()
  await page.getByText('Idempotency-Key', { exact: true }).waitFor()
  await page.getByText(/^202 The run has not ended/).waitFor()
  await page.getByText(/^201 Created/).click()
  await page.getByText('application/json', { exact: true }).waitFor()
  assert.deepEqual(await axe(page), [])
  assert.deepEqual([...hosts], [new URL(env.url).host])
  assert.deepEqual(errors, [])
  const document = await page.goto(`${env.url}/openapi.json`)
  assert.equal((await document.json()).openapi, '3.1.0')
  await context.close()
})
