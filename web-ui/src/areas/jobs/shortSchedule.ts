// A schedule in some words, for one line of a list: "daily 02:00 Berlin". The sentence of the
// server says all of it.
import type { TFunction } from 'i18next'
import type { Schedule } from '../../api/types'
import { parseDuration } from '../../lib/duration'
import { formatInstant } from '../../lib/time'

type Lang = 'en' | 'zh'
type Unit = 's' | 'min' | 'h' | 'd'

/** "Europe/Berlin" is Berlin, and UTC is UTC. */
export function zoneCity(zone: string): string {
  return zone.slice(zone.lastIndexOf('/') + 1).replaceAll('_', ' ')
}

/** undefined: it has no short form, and the expression itself is shown. */
export function shortSchedule(schedule: Schedule, t: TFunction, lang: Lang): string | undefined {
  switch (schedule.kind) {
    case 'none':
      return t('jobs.list.noSchedule')
    case 'fixed_rate':
      return everyText(parseDuration(schedule.every ?? ''), t) ?? undefined
    case 'fixed_delay': {
      const every = durationText(parseDuration(schedule.every ?? ''), t)
      return every && t('jobs.short.afterEnd', { every })
    }
    case 'once':
      return schedule.at ? t('jobs.short.once', { at: `${formatInstant(schedule.at, schedule.zone).slice(0, 16)} ${zoneCity(schedule.zone)}` }) : undefined
    case 'instants':
      return t('jobs.short.instants', { count: schedule.instants?.length ?? 0 })
    case 'daily_window': {
      const every = everyText(parseDuration(schedule.every ?? ''), t)
      return [`${schedule.windowFrom ?? ''}–${schedule.windowTo ?? ''}`, zoneCity(schedule.zone), every].filter(Boolean).join(' ')
    }
    default:
      return cronText(schedule, t, lang)
  }
}

const ALIASES: Record<string, string> = { '@hourly': '0 * * * *', '@daily': '0 0 * * *', '@midnight': '0 0 * * *', '@weekly': '0 0 * * 0', '@monthly': '0 0 1 * *', '@yearly': '0 0 1 1 *', '@annually': '0 0 1 1 *' }

interface Fields {
  second: string
  minute: string
  hour: string
  day: string
  month: string
  weekday: string
  quartz: boolean
}

/** The fields of an expression; undefined where a year is given. */
function fieldsOf(schedule: Schedule): Fields | undefined {
  const text = (schedule.expr ?? '').trim()
  const parts = (ALIASES[text.toLowerCase()] ?? text).toUpperCase().split(/\s+/)
  const quartz = schedule.dialect === 'quartz'
  if (parts.length === 5) parts.unshift('0')
  if (parts.length === 7 && parts[6] === '*') parts.pop()
  if (parts.length !== 6) return undefined
  const [second = '', minute = '', hour = '', day = '', month = '', weekday = ''] = parts.map((part) => (part === '?' ? '*' : part))
  return { second, minute, hour, day, month, weekday, quartz }
}

function cronText(schedule: Schedule, t: TFunction, lang: Lang): string | undefined {
  const fields = fieldsOf(schedule)
  if (!fields) return undefined
  const days = daysText(fields, t, lang)
  if (days === undefined) return undefined
  const interval = intervalText(fields, t)
  if (interval) return [days, interval, days && zoneCity(schedule.zone)].filter(Boolean).join(' ')
  const clock = clockText(fields)
  return clock && `${days || t('jobs.short.daily')} ${clock} ${zoneCity(schedule.zone)}`
}

/** n of "*" with a step and "0/n"; 1 of "*". */
function stepOf(field: string): number | undefined {
  if (field === '*') return 1
  const step = /^(?:\*|0)\/(\d+)$/.exec(field)?.[1]
  return step ? Number(step) : undefined
}

const isNumber = (field: string) => /^\d+$/.test(field)

/** "every 5 min": it fires in even steps of the day. */
function intervalText({ second, minute, hour }: Fields, t: TFunction): string | undefined {
  const seconds = stepOf(second)
  if (seconds && 60 % seconds === 0 && minute === '*' && hour === '*') return everyText(seconds * 1_000, t)
  if (isNumber(second) && minute === '*' && hour === '*') return everyText(60_000, t)
  if (second !== '0') return undefined
  const minutes = stepOf(minute)
  if (minutes && 60 % minutes === 0 && hour === '*') return everyText(minutes * 60_000, t)
  const later = laterStep(minute, 60)
  if (later && hour === '*') return from(everyText(later.step * 60_000, t), `:${two(later.first)}`, t)
  const hours = stepOf(hour)
  if (!isNumber(minute)) return undefined
  const laterHour = laterStep(hour, 24)
  if (laterHour) return from(everyText(laterHour.step * 3_600_000, t), `${two(laterHour.first)}:${two(minute)}`, t)
  if (!hours || 24 % hours !== 0) return undefined
  const every = everyText(hours * 3_600_000, t)
  return minute === '0' ? every : `${every} :${two(minute)}`
}

/** "4/6": even steps that do not begin at 0. */
function laterStep(field: string, of: number): { first: string; step: number } | undefined {
  const [, first = '', text = ''] = /^(\d+)\/(\d+)$/.exec(field) ?? []
  const step = Number(text)
  return step > 0 && of % step === 0 && Number(first) > 0 && Number(first) < step ? { first, step } : undefined
}

const from = (every: string | undefined, at: string, t: TFunction) => every && t('jobs.short.from', { every, at })
const two = (field: string) => field.padStart(2, '0')

/** "02:00", "02:00, 14:00": at most three times of the day. */
function clockText({ second, minute, hour }: Fields): string | undefined {
  if (!isNumber(second) || !isNumber(minute) || !/^\d+(,\d+){0,2}$/.test(hour)) return undefined
  const end = `:${two(minute)}${second === '0' ? '' : `:${two(second)}`}`
  return hour.split(',').map((one) => two(one) + end).join(', ')
}

/** "Mon–Fri"; "" for every day; undefined for days without a short form. */
function daysText(fields: Fields, t: TFunction, lang: Lang): string | undefined {
  const { day, month, weekday } = fields
  if (day === '*' && month === '*') return weekday === '*' ? '' : weekdaysText(fields, lang)
  if (weekday !== '*') return undefined
  if (day === 'L' && month === '*') return t('jobs.short.lastDay')
  if (!isNumber(day)) return undefined
  if (month === '*') return t('jobs.short.monthly', { day })
  const number = isNumber(month) ? Number(month) : MONTHS.indexOf(month) + 1
  if (number < 1 || number > 12) return undefined
  return new Intl.DateTimeFormat(lang === 'zh' ? 'zh-CN' : 'en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' }).format(new Date(Date.UTC(2024, number - 1, Number(day))))
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

function weekdaysText({ weekday, quartz }: Fields, lang: Lang): string | undefined {
  const format = new Intl.DateTimeFormat(lang === 'zh' ? 'zh-CN' : 'en-GB', { weekday: 'short', timeZone: 'UTC' })
  const nameOf = (text: string): string | undefined => {
    const named = WEEKDAYS.indexOf(text)
    const number = named >= 0 ? named : isNumber(text) ? Number(text) - (quartz ? 1 : 0) : -1
    // 2024-01-07 is a Sunday.
    return number >= 0 && number <= 7 ? format.format(new Date(Date.UTC(2024, 0, 7 + (number % 7)))) : undefined
  }
  const parts = weekday.split(',').map((part) => part.split('-').map(nameOf))
  if (parts.length > 4 || parts.some((range) => range.length > 2 || range.includes(undefined))) return undefined
  return parts.map((range) => range.join('–')).join(', ')
}

function unitsOf(ms: number): [number, Unit] | undefined {
  const units: [Unit, number][] = [['d', 86_400_000], ['h', 3_600_000], ['min', 60_000], ['s', 1_000]]
  const fit = units.find(([, length]) => ms >= length && ms % length === 0)
  return fit && [ms / fit[1], fit[0]]
}

function durationText(ms: number, t: TFunction): string | undefined {
  const units = unitsOf(ms)
  return units && t(`jobs.short.unit_${units[1]}`, { n: units[0] })
}

function everyText(ms: number, t: TFunction): string | undefined {
  const units = unitsOf(ms)
  if (!units) return undefined
  return units[0] === 1 ? t(`jobs.short.each_${units[1]}`) : t('jobs.short.every', { every: durationText(ms, t) })
}
