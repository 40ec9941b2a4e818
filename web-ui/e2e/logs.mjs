// Logs that are large, hostile or still being written, with an admin and an agent of their own.
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { client, until } from './api.mjs'
import { axe, newPage, overflow, settled, shot } from './browser.mjs'
import { freePort, startAgent, startDemo } from './demo.mjs'
import { browser, says, signIn, test } from './world.mjs'

const LINES = 100_000
const MANY = 1_000_000
/** Writes lines up to a number in parts. A faster writer would lose lines: an executor holds back a bounded part of a log. */
const paced = (last, part) => `i=0; while [ $i -lt ${last} ]; do seq -f "line %.0f of ${last}" $((i+1)) $((i+${part})); i=$((i+${part})); sleep 0.1; done\n`
/** As many lines may be in the page, however long the log is. */
const ROWS = 200

let demo
let agent
let call
let page

after(async () => {
  await agent?.stop()
  await demo?.stop()
})

const line = (n) => page.locator(`.log-line[data-line="${n}"]`)
const box = () => page.getByRole('region', { name: 'Log of the run' })

/** Runs a shell script, and resolves to its run, which may still go on. */
async function script(name, content) {
  await call('POST', '/scripts', { kind: 'Script', name, spec: { language: 'shell', content } })
  const job = await call('POST', '/jobs', { name, executor: { name: 'agents' }, handler: 'script.shell', script: { name }, schedule: { kind: 'none' }, timeout: '10m', retry: { maxAttempts: 1 } })
  return call('POST', `/jobs/${job.id}/run`, {})
}

async function ended(run) {
  const end = await until(() => call('GET', `/runs/${run.id}`), (one) => one.finishedAt, `run ${run.id} does not end`)
  assert.equal(end.state, 'succeeded', JSON.stringify(end))
}

test('an admin and an agent start', async () => {
  const executors = await freePort()
  demo = await startDemo({ http: await freePort(), executors })
  call = await client(demo.url, demo.password)
  await call('PUT', '/script-policy', { languages: ['shell'], note: 'for logs' })
  const executor = await call('POST', '/executors', { name: 'agents' })
  const token = await call('POST', `/executors/${executor.id}/join-tokens`, { name: 'logs' })
  const key = await call('GET', '/script-key')
  agent = await startAgent({ executors: `127.0.0.1:${executors}`, token: token.secret, key: key.publicKey })
  ;({ page } = await newPage(browser))
  await signIn(page, demo.password, 'admin', demo.url)
  await page.waitForURL('**/overview')
})

test('a log of 100,000 lines opens at its end, and the page holds few of them', async () => {
  const run = await script('many', paced(LINES, 1_000))
  await ended(run)
  await page.goto(`${demo.url}/runs/${run.id}`)
  await page.getByText(`line ${LINES} of ${LINES}`).waitFor()
  await settled(page)
  assert.deepEqual(await axe(page), [])
  await shot(page, 'log-100000')

  // Each frame of a minute's reading moves on by 40 lines.
  const frames = await box().evaluate(async (el) => {
    const times = []
    let most = 0
    for (let i = 0; i < 300; i++) {
      el.scrollTop -= i % 60 === 59 ? -8_000 : 800
      times.push(await new Promise(requestAnimationFrame))
      most = Math.max(most, document.querySelectorAll('.log-line').length)
    }
    const gaps = times.slice(1).map((at, i) => at - times[i]).sort((a, b) => a - b)
    return { most, median: gaps[gaps.length >> 1], p95: gaps[Math.floor(gaps.length * 0.95)], fps: 1_000 / (gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length) }
  })
  console.log(`frames: median ${frames.median.toFixed(1)} ms, p95 ${frames.p95.toFixed(1)} ms, ${frames.fps.toFixed(0)} a second, at most ${frames.most} lines in the page`)
  assert.ok(frames.most < ROWS, `${frames.most} lines in the page`)

  await page.getByLabel('Go to line').fill('50000')
  await page.getByLabel('Go to line').press('Enter')
  await line(50_000).waitFor()
  await page.getByLabel('Search in the log').fill('line 77777 of')
  await page.getByLabel('Search in the log').press('Enter')
  await page.locator('.log-line mark', { hasText: 'line 77777 of' }).waitFor()
  await page.getByLabel('Search in the log').fill('')
  await settled(page)

  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).click()])
  const chunks = []
  for await (const chunk of await download.createReadStream()) chunks.push(chunk)
  const saved = Buffer.concat(chunks).toString()
  assert.equal(saved, await call('GET', `/runs/${run.id}/log/download`), 'what is saved is what the server has')
  const texts = saved.split('\n').map((text) => /line \d+ of \d+$/.exec(text)?.[0]).filter(Boolean)
  assert.deepEqual([texts.length, texts[0], texts.at(-1)], [LINES, `line 1 of ${LINES}`, `line ${LINES} of ${LINES}`])
})

test('hostile lines are text: markup, colours, a megabyte in one line, emoji, bytes that are no text', async () => {
  const run = await script('hostile', `cat <<'END'
<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">
END
printf '\\033[31mred\\033[0m and \\033]0;title\\007plain\\n'
head -c 1000000 /dev/zero | tr '\\0' x; echo
echo '对账失败:订单 42'
printf '\\360\\237\\224\\224\\360\\237\\221\\251\\342\\200\\215\\360\\237\\222\\273 bells\\n'
printf 'bad \\377\\376 bytes\\n'
printf 'turned \\342\\200\\256txt.exe\\n'
printf 'first\\rsecond\\n'
echo 'the last line'
`)
  await ended(run)
  await page.goto(`${demo.url}/runs/${run.id}`)
  const lastLine = page.locator('.log-line span', { hasText: /^the last line$/ }).last()
  await lastLine.waitFor()
  for (const text of ['<script>window.hacked = 1</script>', '对账失败:订单 42', '🔔👩‍💻 bells', /bad \ufffd+ bytes/, 'turned \\u202etxt.exe']) await page.getByText(text).first().waitFor()
  assert.equal(await page.evaluate(() => window.hacked), undefined)
  assert.equal(await page.locator('.log-line script, .log-line img').count(), 0)
  const red = page.locator('.log-line span', { hasText: /^red$/ })
  assert.notEqual(await red.evaluate((el) => getComputedStyle(el).color), await lastLine.evaluate((el) => getComputedStyle(el).color))
  await settled(page)
  assert.deepEqual(await axe(page), [])
  for (const width of [1360, 375]) {
    await page.setViewportSize({ width, height: 850 })
    assert.ok((await overflow(page)) <= 0, `${width} px`)
    await shot(page, `log-hostile-${width}`)
  }
  await page.setViewportSize({ width: 1360, height: 850 })
})

test('a log that is being written is followed; a reader who scrolls up is left in peace, and told of new lines', async () => {
  const run = await script('slow', `i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo "step $i"; sleep 0.05; done\n`)
  await page.goto(`${demo.url}/runs/${run.id}`)
  await page.getByText(/^step \d+$/).first().waitFor()
  const atEnd = () => box().evaluate((el) => el.scrollHeight - el.scrollTop - el.clientHeight < 40)
  await page.waitForFunction(() => document.querySelectorAll('.log-line').length > 20)
  assert.ok(await atEnd())
  await page.waitForFunction(() => document.querySelector('.log-scroll').scrollHeight > 1_200)
  await box().hover()
  await page.mouse.wheel(0, -400)
  const more = page.getByRole('button', { name: /new line/ })
  await more.waitFor()
  const top = await box().evaluate((el) => el.scrollTop)
  await says(more, /([5-9]|\d\d) new lines/)
  assert.equal(await box().evaluate((el) => el.scrollTop), top, 'what is read does not move')
  await shot(page, 'log-follow')
  await more.click()
  await page.waitForFunction(() => document.querySelector('.log-jump') === null)
  assert.ok(await atEnd())

  // The server dies, and the executor goes on.
  const seen = Number(await page.locator('.log-line').last().getAttribute('data-line'))
  await demo.kill()
  await page.getByText('The server does not answer. Reconnecting…').waitFor()
  assert.ok((await page.locator('.log-line').count()) > 0, 'the lines stay')
  await shot(page, 'log-away')
  await demo.restart()
  await page.getByText('The server does not answer. Reconnecting…').waitFor({ state: 'detached' })
  await page.waitForFunction((n) => Number([...document.querySelectorAll('.log-line')].at(-1)?.dataset.line) > n + 40, seen)
  await page.goto(`${demo.url}/runs/${run.id}#L1`)
  await line(1).waitFor()
  const items = []
  for (let after = 0; ; ) {
    const part = await call('GET', `/runs/${run.id}/log?limit=1000&after=${after}`)
    if (part.lines.length === 0) break
    items.push(...part.lines)
    after = part.next
  }
  const steps = items.map((one) => /^step (\d+)$/.exec(one.msg)?.[1]).filter(Boolean).map(Number)
  assert.deepEqual(steps, Array.from({ length: steps.length }, (_, i) => i + 1), 'each line once, in its order')
  await page.getByRole('button', { name: 'Cancel run' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel run' }).click()
  await page.locator('h1 .state', { hasText: 'Cancelled' }).waitFor()
})

test('a log of a million lines opens at its end with few lines in the page', async () => {
  const run = await script('million', paced(MANY, 2_500))
  await ended(run)
  await page.goto(`${demo.url}/runs/${run.id}`)
  await page.getByText(`line ${MANY} of`).waitFor()
  assert.ok((await page.locator('.log-line').count()) < ROWS)
  await page.getByLabel('Search in the log').fill('line 654321')
  await page.getByLabel('Search in the log').press('Enter')
  await page.locator('.log-line mark').first().waitFor()
  const heap = await page.evaluate(() => performance.memory.usedJSHeapSize)
  console.log(`heap ${(heap / 1e6).toFixed(0)} MB`)
  assert.ok(heap < 300e6, `${heap} bytes`)
})
