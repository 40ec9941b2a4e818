// What the tour shows: the text of each picture, how its page is reached, and what has to be in sight.
import assert from 'node:assert/strict'
import { until } from './api.mjs'
import { says } from './world.mjs'

export const SIZE = { width: 1280, height: 800 }

/** The first of these elements is in the picture, by at least so many of its pixels from its top. */
async function seen(locator, px = 16) {
  const one = locator.first()
  await one.waitFor()
  const box = await one.boundingBox()
  const inside = box.y >= 0 && box.x >= 0 && box.y + Math.min(px, box.height) <= SIZE.height && box.x < SIZE.width
  assert.ok(inside, `${locator} is not in the picture: ${JSON.stringify(box)}`)
}

const heading = (page, name) => page.getByRole('heading', { level: 1, name })
const section = (page, lang, names) => page.locator('section.card', { has: page.getByRole('heading', { level: 2, name: names[lang] }) })
const toTop = (locator) => locator.first().evaluate((one) => one.scrollIntoView())

const COURSE = { en: 'Course of the run', zh: '执行过程' }
const WHEN = { en: 'When it fires', zh: '何时触发' }

/** At least so many of these are wholly or partly in the picture. */
async function many(locator, least) {
  const tops = await locator.evaluateAll((all) => all.map((one) => one.getBoundingClientRect().top))
  const inside = tops.filter((top) => top >= 0 && top + 16 <= SIZE.height).length
  assert.ok(inside >= least, `${inside} of ${locator}, not ${least}, in the picture`)
}

export const PICTURES = [
  {
    name: 'overview',
    alt: { en: 'The overview: runs by hour with failures below the line', zh: '总览：每小时的执行，失败画在基线以下' },
    open: ({ go }) => go('/overview'),
    async shows({ page, lang }) {
      await seen(heading(page, { en: 'Overview', zh: '总览' }[lang]))
      await many(page.locator('.tile'), 6)
      const drawing = page.locator('.plot-drawing').first()
      await seen(drawing, 140)
      assert.ok((await drawing.locator('.bar.st-success').count()) > 20, 'each hour of a day has a bar')
      const { y: base } = await drawing.locator('line.base').boundingBox()
      const tops = await drawing.locator('.bar.st-failed').evaluateAll((all) => all.map((one) => one.getBoundingClientRect().top))
      assert.ok(tops.length > 5 && tops.every((y) => y >= base - 1), `failures begin at ${tops}, the line is at ${base}`)
    },
  },
  {
    name: 'jobs',
    alt: { en: 'The list of jobs, with their last runs, schedules and executors', zh: '任务列表：近期执行、调度和执行器' },
    open: ({ go }) => go('/jobs'),
    async shows({ page, lang }) {
      await seen(heading(page, { en: 'Jobs', zh: '任务' }[lang]))
      await many(page.locator('tbody tr'), 14)
      await many(page.locator('.peal-strip'), 10)
      for (const column of ['schedule', 'executor']) for (const cell of await page.locator(`td.col-${column}`).allInnerTexts()) assert.match(cell, /\S/, column)
      await seen(page.getByRole('columnheader', { name: { en: 'Schedule', zh: '调度' }[lang] }))
    },
  },
  {
    name: 'job',
    alt: { en: 'A job: its last failure, its runs, its durations of a week', zh: '一个任务：最近的失败、执行和一周的时长' },
    open: ({ go, made }) => go(`/jobs/${made.job}`),
    async shows({ page }) {
      await seen(heading(page, /^payout-file/))
      await seen(page.locator('.verdict-error'))
      await says(page.locator('.verdict-error'), /host key/)
      await seen(page.locator('.peal-strip'), 80)
      assert.ok((await page.locator('.peal-strip .peal-bar.st-failed').count()) > 5)
      await seen(page.locator('.band-area'), 20)
      assert.ok((await page.locator('.dot').count()) > 20, 'a dot for each run of a week')
    },
  },
  {
    name: 'runs',
    alt: { en: 'The runs of a day that failed, with their messages', zh: '一天中失败的执行及其消息' },
    open: ({ go }) => go('/runs?state=failed&range=24h'),
    async shows({ page, lang }) {
      await seen(heading(page, { en: 'Runs', zh: '执行' }[lang]))
      await many(page.locator('tbody tr'), 6)
      for (const row of await page.locator('.table.dense tbody tr').all()) {
        await says(row.locator('.state'), { en: /Failed/, zh: /失败/ }[lang])
        await says(row.locator('.col-why'), /\S/)
      }
    },
  },
  {
    name: 'run',
    alt: { en: 'A run: its course beside the last good run, and its log', zh: '一次执行：与上次成功对照的过程，以及日志' },
    async open({ page, lang, go, made }) {
      await go(`/runs/${made.run}`)
      await page.locator('h1 .state.st-success').waitFor()
      await page.locator('.log-line').nth(5).waitFor()
      await toTop(section(page, lang, COURSE))
    },
    async shows({ page, lang }) {
      await seen(section(page, lang, COURSE).getByRole('heading'))
      await seen(page.locator('.gantt'), 40)
      await seen(page.locator('.gantt .ghost'))
      await many(page.locator('.log-line'), 6)
      await says(page.locator('.log-line').first(), /exported/)
    },
  },
  {
    name: 'why',
    alt: { en: 'Why a run came as it did: each step with its time, and the instances considered', zh: '一次执行为何如此：每一步的时间，以及考虑过的实例' },
    async open({ page, go, call, made }) {
      const ended = (answer) => answer.items.find((one) => one.state === 'succeeded')
      const run = ended(await until(() => call('GET', `/runs?jobId=${made.minutely}&cause=schedule`), ended, 'the job of each minute does not run'))
      await go(`/jobs/${made.minutely}?why=${run.fireAt}`)
      await page.locator('.considered li').waitFor()
    },
    async shows({ page }) {
      await many(page.locator('table.steps tbody tr'), 5)
      for (const time of await page.locator('table.steps tbody td.mono').allInnerTexts()) assert.match(time, /^\d\d:\d\d:\d\d/)
      await seen(page.locator('.considered li'))
      await says(page.locator('.considered li').first(), /shop-1/)
    },
  },
  {
    name: 'form',
    alt: { en: 'A new job: its cron expression in words, and the next ten fires', zh: '新建任务：Cron 表达式的文字说明和接下来的十次触发' },
    async open({ page, lang, go }) {
      await go('/jobs/new')
      // Without somebody to tell, the form says so.
      await page.getByLabel({ en: 'Owner e-mail', zh: '负责人邮箱' }[lang]).fill('ann@example.com')
      await page.getByLabel({ en: 'Cron expression', zh: 'Cron 表达式' }[lang]).fill('0 30 4 * * MON-FRI')
      await page.locator('.fires li').nth(9).waitFor()
      await page.evaluate(() => document.activeElement.blur())
      await toTop(section(page, lang, WHEN))
    },
    async shows({ page, lang }) {
      await seen(section(page, lang, WHEN).getByRole('heading'))
      await seen(page.getByLabel({ en: 'Cron expression', zh: 'Cron 表达式' }[lang]))
      await many(page.locator('.fires li'), 10)
      await seen(page.getByText({ en: /^At 04:30.*Monday/, zh: /周一至周五 04:30/ }[lang]))
    },
  },
  {
    name: 'executor',
    alt: { en: 'An executor: its instance with its load, and its handlers', zh: '一个执行器：实例及其负载，以及处理器' },
    open: ({ go, made }) => go(`/executors/${made.executor}`),
    async shows({ page, lang }) {
      await seen(heading(page, /^sample-shop/))
      const instance = page.locator('tr', { hasText: '127.0.0.1' })
      await seen(instance)
      await seen(instance.locator('.meter'))
      await many(page.locator('tr', { hasText: /cancel-unpaid|count-shelves/ }), 2)
      assert.equal(await page.locator('.table-wrap').evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth).length), 0, `a table is cut off: ${lang}`)
    },
  },
  {
    name: 'incident',
    alt: { en: 'An incident: what failed, since when, and who was told', zh: '一次事件：什么失败了、从何时开始、通知了谁' },
    open: ({ go, made }) => go(`/alerts/incidents/${made.incident}`),
    async shows({ page, lang }) {
      await seen(heading(page, { en: /^Run failed/, zh: /^执行失败/ }[lang]))
      await seen(page.getByText({ en: 'Since', zh: '开始于' }[lang], { exact: true }))
      const told = page.locator('tr', { hasText: 'books@shop.example' })
      await seen(told)
      await says(told, { en: /Delivered/, zh: /已送达/ }[lang])
    },
  },
]
