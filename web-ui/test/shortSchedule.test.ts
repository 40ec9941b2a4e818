// @vitest-environment jsdom
import { render } from '@testing-library/react'
import i18next from 'i18next'
import { createElement } from 'react'
import { initReactI18next } from 'react-i18next'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Schedule } from '../src/api/types'
import { en } from '../src/i18n/en'
import { zh } from '../src/i18n/zh'
import { ShortSchedule } from '../src/areas/jobs/ShortSchedule'
import { shortSchedule, zoneCity } from '../src/areas/jobs/shortSchedule'

beforeAll(() => i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en }, zh: { translation: zh } }, interpolation: { escapeValue: false } }))

const both = (schedule: Schedule) => (['en', 'zh'] as const).map((lang) => shortSchedule(schedule, i18next.getFixedT(lang), lang))
const cron = (expr: string, dialect: Schedule['dialect'] = 'standard', zone = 'Europe/Berlin'): Schedule => ({ kind: 'cron', expr, dialect, zone })

describe('cron', () => {
  it.each([
    ['0 2 * * *', 'daily 02:00 Berlin', '每天 02:00 Berlin'],
    ['30 4,16 * * *', 'daily 04:30, 16:30 Berlin', '每天 04:30, 16:30 Berlin'],
    ['@daily', 'daily 00:00 Berlin', '每天 00:00 Berlin'],
    ['*/5 * * * *', 'every 5 min', '每 5 分钟'],
    ['* * * * *', 'every minute', '每分钟'],
    ['0 * * * *', 'hourly', '每小时'],
    ['@hourly', 'hourly', '每小时'],
    ['20 * * * *', 'hourly :20', '每小时 :20'],
    ['5,25 * * * *', 'hourly :05, :25', '每小时 :05, :25'],
    ['0,30 * * * *', 'every 30 min', '每 30 分钟'],
    ['10,25,40,55 * * * *', 'every 15 min from :10', '每 15 分钟，从 :10 起'],
    ['0 */6 * * *', 'every 6 h Berlin', '每 6 小时 Berlin'],
    ['0 0/6 * * *', 'every 6 h Berlin', '每 6 小时 Berlin'],
    ['25 */2 * * *', 'every 2 h :25 Berlin', '每 2 小时 :25 Berlin'],
    ['0 0,8,16 * * *', 'every 8 h Berlin', '每 8 小时 Berlin'],
    ['0 8-20 * * *', '08:00–20:00 Berlin hourly', '08:00–20:00 Berlin 每小时'],
    ['0,30 8-20 * * MON-SAT', 'Mon–Sat 08:00–20:30 Berlin every 30 min', '周一–周六 08:00–20:30 Berlin 每 30 分钟'],
    ['15 8-20/2 * * *', '08:15–20:15 Berlin every 2 h', '08:15–20:15 Berlin 每 2 小时'],
    ['0 1,2,3,4 * * *', '01:00–04:00 Berlin hourly', '01:00–04:00 Berlin 每小时'],
    ['*/5 2 * * *', '02:00–02:55 Berlin every 5 min', '02:00–02:55 Berlin 每 5 分钟'],
    ['0,20 2 * * *', 'daily 02:00, 02:20 Berlin', '每天 02:00, 02:20 Berlin'],
    ['1/5 * * * *', 'every 5 min from :01', '每 5 分钟，从 :01 起'],
    ['17 4/6 * * *', 'every 6 h from 04:17 Berlin', '每 6 小时，从 04:17 起 Berlin'],
    ['0 9 * * 1-5', 'Mon–Fri 09:00 Berlin', '周一–周五 09:00 Berlin'],
    ['0 9 * * MON,WED,7', 'Mon, Wed, Sun 09:00 Berlin', '周一, 周三, 周日 09:00 Berlin'],
    ['*/15 * * * 1-5', 'Mon–Fri every 15 min Berlin', '周一–周五 每 15 分钟 Berlin'],
    ['0 3 1 * *', 'monthly on day 1 03:00 Berlin', '每月 1 日 03:00 Berlin'],
    ['0 3 L * *', 'last day of the month 03:00 Berlin', '每月最后一天 03:00 Berlin'],
    ['0 3 1,15 * *', 'monthly on day 1, 15 03:00 Berlin', '每月 1, 15 日 03:00 Berlin'],
    ['0 0 1 JAN *', '1 Jan 00:00 Berlin', '1月1日 00:00 Berlin'],
    ['0 0 1 1/3 *', '1 Jan, Apr, Jul, Oct 00:00 Berlin', '1月, 4月, 7月, 10月1日 00:00 Berlin'],
    // Days that do not exist stay as they are written.
    ['0 0 31 2 *', '31 Feb 00:00 Berlin', '2月31日 00:00 Berlin'],
    ['0 0 31 APR *', '31 Apr 00:00 Berlin', '4月31日 00:00 Berlin'],
    ['0 0 30 2 *', '30 Feb 00:00 Berlin', '2月30日 00:00 Berlin'],
  ])('%s', (expr, english, chinese) => expect(both(cron(expr))).toEqual([english, chinese]))

  it('reads seconds and the days of Quartz', () => {
    expect(both(cron('*/10 * * * * *', 'seconds'))).toEqual(['every 10 s', '每 10 秒'])
    expect(both(cron('15 * * * * *', 'seconds'))[0]).toBe('every minute')
    expect(both(cron('5,45 * * * * *', 'seconds'))).toEqual(['every minute at 5, 45 s', '每分钟第 5, 45 秒'])
    expect(both(cron('0,30 * * * * *', 'seconds'))[0]).toBe('every 30 s')
    expect(both(cron('15 */5 * * * *', 'seconds'))).toEqual(['every 5 min from :00:15', '每 5 分钟，从 :00:15 起'])
    expect(both(cron('*/20 * 9-17 * * 1-5', 'seconds'))[0]).toBe('Mon–Fri 09:00–17:59 Berlin every 20 s')
    expect(both(cron('0 0 9 ? * 2-6', 'quartz'))[0]).toBe('Mon–Fri 09:00 Berlin')
    expect(both(cron('0 30 2 ? * MON-FRI *', 'quartz', 'America/New_York'))[0]).toBe('Mon–Fri 02:30 New York')
    expect(both(cron('5 30 2 * * *', 'seconds', 'UTC'))[0]).toBe('daily 02:30:05 UTC')
  })

  it.each(['7/13 9-17 * * *', '*/7 * * * *', '0 0 1-7 * 1', '0 2 * 1,7 *', '0 1,2,5,9 * * *', '0 0 * * 5#2', '0 0 0 * * ? 2027', '0 22-2 * * *', '0 24 * * *', '0 0/0 * * *', 'nonsense', ''])('has no short form of %s', (expr) => {
    expect(both(cron(expr))).toEqual([undefined, undefined])
  })
})

it('says the other kinds', () => {
  const zone = 'Asia/Shanghai'
  expect(both({ kind: 'none', zone })).toEqual(['on demand only', '仅按需运行'])
  expect(both({ kind: 'fixed_rate', every: '5m0s', zone })).toEqual(['every 5 min', '每 5 分钟'])
  expect(both({ kind: 'fixed_rate', every: '1h', zone })).toEqual(['hourly', '每小时'])
  expect(both({ kind: 'fixed_rate', every: '90s', zone })[0]).toBe('every 90 s')
  expect(both({ kind: 'fixed_delay', every: '30s', zone })).toEqual(['30 s after each end', '每次结束后 30 秒'])
  expect(both({ kind: 'once', at: '2026-12-01T01:00:00Z', zone })).toEqual(['once 2026-12-01 09:00 Shanghai', '一次 2026-12-01 09:00 Shanghai'])
  expect(both({ kind: 'instants', instants: ['2026-12-01T01:00:00Z'], zone })[0]).toBe('1 instant')
  expect(both({ kind: 'daily_window', windowFrom: '09:00', windowTo: '17:00', every: '15m', zone })[0]).toBe('09:00–17:00 Shanghai every 15 min')
})

it('shows an expression without a short form with its zone', () => {
  const { container } = render(createElement(ShortSchedule, { schedule: cron('*/7 * * * *') }))
  expect(container.textContent).toBe('*/7 * * * * Berlin')
  expect(container.querySelector('.mono')?.getAttribute('title')).toBe('*/7 * * * * · Europe/Berlin')
})

it('names the city of a zone', () => {
  expect(['Europe/Berlin', 'UTC', 'America/Argentina/Buenos_Aires'].map(zoneCity)).toEqual(['Berlin', 'UTC', 'Buenos Aires'])
})
