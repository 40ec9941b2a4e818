// The browser side of the smoke test: start Chromium, watch its console, run
// axe, take screenshots.
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** Against a hang only: a loaded machine draws a page in many seconds. */
export const GUARD_MS = 60_000
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

export const env = {
  url: (process.env.CARILLON_E2E_URL ?? 'http://127.0.0.1:8080').replace(/\/$/, ''),
  user: process.env.CARILLON_E2E_USER ?? 'admin',
  password: process.env.CARILLON_E2E_PASSWORD ?? '',
  /** Handler for the job that is created; default: the first of the first executor online. */
  executor: process.env.CARILLON_E2E_EXECUTOR ?? '',
  handler: process.env.CARILLON_E2E_HANDLER ?? '',
  /** JSON input for it; default: the example made from its schema. */
  input: process.env.CARILLON_E2E_INPUT ?? '',
  /** Folder for screenshots; none are taken without it. */
  shots: process.env.CARILLON_E2E_SHOTS ?? '',
  /** Folder for the pictures of the tour; none are written without it. */
  tour: process.env.CARILLON_E2E_TOUR ?? '',
  chromium: process.env.CARILLON_E2E_CHROMIUM ?? '/usr/bin/chromium',
}

export function launch() {
  return chromium.launch({
    executablePath: env.chromium,
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  })
}

/** A page that remembers errors and warnings of its console, except those a step announces as expected. */
export async function newPage(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 850 }, locale: 'en-US', timezoneId: 'America/New_York', reducedMotion: 'reduce', ...options })
  const page = await context.newPage()
  page.setDefaultTimeout(GUARD_MS)
  const errors = []
  const expected = []
  page.on('console', (message) => {
    if (message.type() !== 'error' && message.type() !== 'warning') return
    const line = `${message.text()} ${message.location().url}`
    if (!expected.some((pattern) => pattern.test(line))) errors.push(line)
  })
  page.on('pageerror', (err) => errors.push(`uncaught: ${err.message}`))
  return { page, context, errors, expect: (pattern) => expected.push(pattern) }
}

export async function shot(page, name) {
  if (!env.shots) return
  mkdirSync(env.shots, { recursive: true })
  await page.screenshot({ path: `${env.shots}/${name}.png`, fullPage: true })
}

/** Links of the lines of a log are 20 px high. "Go to line" does the same (WCAG 2.2, target size: equivalent). */
const EQUIVALENT = /class="ln"/

/** Accessibility violations as lines; empty when the page is clean. */
export async function axe(page) {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axeSource)
  const result = await page.evaluate((rules) => window.axe.run(document, { runOnly: rules, rules: { 'target-size': { enabled: true } } }), RULES)
  for (const v of result.violations) if (v.id === 'target-size') v.nodes = v.nodes.filter((node) => !EQUIVALENT.test(node.html))
  return result.violations.filter((v) => v.nodes.length > 0).map((v) => `${v.id} ×${v.nodes.length}: ${v.nodes[0].html.slice(0, 160)}`)
}

/** How far the page itself scrolls sideways, in CSS pixels. */
export function overflow(page) {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
}

/** The page stands: nothing is loading and nothing moves any more. */
export async function settled(page) {
  await page.waitForFunction(() => document.querySelector('h1, h2') && !document.querySelector('[aria-busy=true], .skeleton') && document.getAnimations().every((a) => a.playState !== 'running' || a.effect?.getTiming().iterations === Infinity))
}

/** Largest sum of layout shifts of a page while it loads: the bound of "good" in Core Web Vitals. */
const SHIFT = 0.1
const SLOW_MS = 300
const WIDTHS = [{ width: 1440, height: 900 }, { width: 375, height: 800 }]

/** Addresses that jump more than SHIFT while each answer of the API takes SLOW_MS, with what moved; and the most that any of them jumped. */
export async function jumps(context, addresses) {
  const page = await context.newPage()
  await page.addInitScript(() => {
    window.shift = 0
    window.moved = []
    new PerformanceObserver((list) => {
      for (const one of list.getEntries()) {
        if (one.hadRecentInput) continue
        window.shift += one.value
        for (const { node } of one.sources) window.moved.push(`${one.value.toFixed(3)} ${(node?.nodeType === 1 ? node : node?.parentElement)?.outerHTML.slice(0, 120)}`)
      }
    }).observe({ type: 'layout-shift', buffered: true })
  })
  await page.route('**/api/v1/**', async (route) => {
    await new Promise((resolve) => setTimeout(resolve, SLOW_MS))
    await route.continue().catch(() => {}) // the page has gone on
  })
  const bad = []
  let most = 0
  for (const size of WIDTHS) {
    await page.setViewportSize(size)
    for (const address of addresses) {
      await page.goto(address)
      await settled(page)
      const { shift, moved } = await page.evaluate(() => ({ shift: window.shift, moved: window.moved }))
      most = Math.max(most, shift)
      if (shift > SHIFT) bad.push([`${address} at ${size.width} px: ${shift.toFixed(3)}`, ...moved].join('\n    '))
    }
  }
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  await page.close()
  return { bad, most }
}
