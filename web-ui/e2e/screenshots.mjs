// The pictures of the tour (docs/guide/tour.md). Each page is checked for what the text of its picture
// says, in both languages and themes. With CARILLON_E2E_TOUR the pictures are written to this folder.
// No test compares them byte by byte, because each has times of the moment at which it was taken.
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after } from 'node:test'
import { client, until } from './api.mjs'
import { env, newPage, settled } from './browser.mjs'
import { startDemo } from './demo.mjs'
import { startMail } from './mail.mjs'
import { PICTURES, SIZE } from './tourpictures.mjs'
import { browser, signIn, test } from './world.mjs'

/** As many colours are enough for text and lines. A lossless picture of a palette is sharper than a lossy one, and as small. */
const COLOURS = 24
/** Of all pictures together: each clone of the repository has them. */
const MOST_BYTES = 1_200_000
const ZONES = { en: 'Europe/Berlin', zh: 'Asia/Shanghai' }
const DOCUMENTS = { en: ['README.md', 'docs/guide/tour.md'], zh: ['README.zh-CN.md', 'docs/guide/tour.zh-CN.md'] }

let mail
let demo
let call
/** An empty page, which makes the files. */
let darkroom
const made = {}
const visits = {}

after(async () => {
  await demo?.stop()
  mail?.stop()
})

/** Signs in with a language. Names that depend on the machine and the build are the same in all pictures. */
async function visit(lang) {
  const one = await newPage(browser, { viewport: SIZE, deviceScaleFactor: 1, timezoneId: ZONES[lang] })
  one.expect(/401.*\/auth\/refresh/)
  await one.context.route(/\/api\/v1\/(version|executors\/\d+\/instances)/, async (route) => {
    const response = await route.fetch()
    const body = (await response.text()).replace(/("host":)"[^"]*"/g, '$1"shop-1"').replace(/"pid":\d+/g, '"pid":1234')
    await route.fulfill({ response, body: route.request().url().endsWith('/version') ? body.replace(/("version":)"[^"]*"/, '$1"dev"') : body })
  })
  await signIn(one.page, demo.password, 'admin', demo.url)
  await one.page.waitForURL('**/overview')
  await one.page.evaluate((value) => localStorage.setItem('carillon.lang', value), lang)
  return { ...one, lang }
}

/** Nothing is being loaded, nothing went wrong, and the page has the theme and the language. */
async function clean(page, lang, theme) {
  await page.waitForFunction((wanted) => document.documentElement.dataset.theme === wanted, theme)
  await settled(page)
  await page.evaluate(() => document.fonts.ready)
  assert.equal(await page.evaluate(() => document.documentElement.lang), lang)
  for (const trouble of ['.skeleton', '[aria-busy=true]', '.blank .st-failed', '.banner', '[role=alert]', '.ant-spin']) {
    assert.equal(await page.locator(trouble).count(), 0, trouble)
  }
}

/** In the browser: a picture with few colours, as lossless WebP. */
async function reduced({ png, colours }) {
  const image = new Image()
  image.src = `data:image/png;base64,${png}`
  await image.decode()
  const canvas = Object.assign(document.createElement('canvas'), { width: image.width, height: image.height })
  const context = canvas.getContext('2d', { alpha: false })
  context.drawImage(image, 0, 0)
  const data = context.getImageData(0, 0, image.width, image.height)
  const pixels = new Uint32Array(data.data.buffer)
  const counts = new Map()
  for (const colour of pixels) counts.set(colour, (counts.get(colour) ?? 0) + 1)
  const far = (a, b) => [0, 8, 16].reduce((sum, bits) => sum + (((a >> bits) & 255) - ((b >> bits) & 255)) ** 2, 0)
  // Each further colour is the one that takes away most of what is still wrong.
  const nearest = new Map()
  const wrong = new Map([...counts].map(([colour, count]) => [colour, count * Number.MAX_SAFE_INTEGER]))
  for (let n = 0; n < colours; n++) {
    let next
    for (const [colour, sum] of wrong) if (next === undefined || sum > wrong.get(next)) next = colour
    for (const [colour, sum] of wrong) {
      const left = counts.get(colour) * far(colour, next)
      if (left >= sum) continue
      wrong.set(colour, left)
      nearest.set(colour, next)
    }
  }
  for (let i = 0; i < pixels.length; i++) pixels[i] = nearest.get(pixels[i])
  context.putImageData(data, 0, 0)
  return canvas.toDataURL('image/webp', 1).split(',')[1]
}

async function take(page, lang, name) {
  if (!env.tour) return
  const png = (await page.screenshot()).toString('base64')
  const webp = await darkroom.evaluate(reduced, { png, colours: COLOURS })
  mkdirSync(join(env.tour, lang), { recursive: true })
  writeFileSync(join(env.tour, lang, `${name}.webp`), Buffer.from(webp, 'base64'))
}

test('the tour: a shop with a run that goes well, and one that fails and is told', async () => {
  mail = await startMail()
  demo = await startDemo({
    env: {
      CARILLON_EXECUTOR_INSTANCE: 'shop-1',
      CARILLON_MAIL_HOST: '127.0.0.1',
      CARILLON_MAIL_PORT: String(mail.port),
      CARILLON_MAIL_TLS: 'none',
      CARILLON_MAIL_FROM: 'carillon@shop.example',
    },
  })
  call = await client(demo.url, demo.password)
  await until(() => demo.output, (output) => /Imported .* of the last week/.test(output), 'the shop has no history')
  const { items: jobs } = await call('GET', '/jobs?limit=200')
  const jobOf = (name) => jobs.find((one) => one.name === name).id
  const run = (name) => call('POST', `/jobs/${jobOf(name)}/run`, {})
  const good = await run('export-archive')
  const bad = await run('payout-file')
  const { items: executors } = await call('GET', '/executors')
  Object.assign(made, { run: good.id, job: jobOf('payout-file'), minutely: jobOf('revenue-report-preview'), executor: executors.find((one) => one.name === 'sample-shop').id })
  const told = await until(() => call('GET', '/deliveries'), (all) => all.items.some((one) => one.runId === bad.id && one.state === 'delivered'), 'nobody is told')
  made.incident = told.items.find((one) => one.runId === bad.id).incidentId
  for (const lang of ['en', 'zh']) visits[lang] = await visit(lang)
  darkroom = await browser.newPage()
})

for (const picture of PICTURES) {
  test(`the tour: ${picture.alt.en}`, async () => {
    for (const { page, lang } of Object.values(visits)) {
      const go = async (path) => {
        await page.goto(demo.url + path)
        await settled(page)
      }
      await page.emulateMedia({ colorScheme: 'light' })
      await picture.open({ page, lang, go, call, made })
      for (const theme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme: theme })
        await clean(page, lang, theme)
        await picture.shows({ page, lang })
        await take(page, lang, theme === 'dark' ? `${picture.name}-dark` : picture.name)
      }
    }
  })
}

test('the tour: the documents have the pictures, each with the text that was checked', async () => {
  const names = PICTURES.flatMap(({ name }) => [`${name}-dark.webp`, `${name}.webp`]).sort()
  let bytes = 0
  for (const [lang, files] of Object.entries(DOCUMENTS)) {
    const folder = new URL(`../../docs/images/${lang}/`, import.meta.url)
    assert.deepEqual(readdirSync(folder).sort(), names, 'make tour writes them; what is left over is to be deleted')
    for (const name of names) bytes += statSync(new URL(name, folder)).size
    const text = new Map(PICTURES.map(({ name, alt }) => [name, alt[lang]]))
    for (const file of files) {
      const document = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
      const shown = [...document.matchAll(/<source media="\(prefers-color-scheme: dark\)" srcset="\S*images\/(\w+)\/(\w+)-dark\.webp">\s*<img alt="([^"]*)" src="\S*images\/(\w+)\/(\w+)\.webp">/g)]
      assert.equal(shown.length, document.match(/<img /g).length, file)
      for (const [, darkLang, dark, alt, lightLang, light] of shown) assert.deepEqual([darkLang, dark, lightLang, alt], [lang, light, lang, text.get(light)], file)
      if (file.endsWith(files[1])) assert.deepEqual(shown.map((one) => one[5]), [...text.keys()], file)
    }
  }
  assert.ok(bytes < MOST_BYTES, `the pictures have ${bytes} bytes`)
  for (const { errors, context } of Object.values(visits)) {
    assert.deepEqual(errors, [])
    await context.close()
  }
})
