// A schedule in some words, for one line of a list: "daily 02:00 Berlin". The sentence of the
// server says all of it.
import type { TFunction } from 'i18next'
import type { Schedule } from '../../api/types'
import { parseDuration } from '../../lib/duration'
import { formatInstant } from '../../lib/time'
import { cronFields, roundStepOf, stepOf, valuesOf, type CronFields } from './cronFields'

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

/** How many values a text lists. */
const LISTED = 3
const MONTHS_LISTED = 4

function cronText(schedule: Schedule, t: TFunction, lang: Lang): string | undefined {
  const fields = cronFields(schedule)
  const days = fields && daysText(fields, t, lang)
  if (!fields || days === undefined) return undefined
  const { minutes, hours } = fields
  const zone = zoneCity(schedule.zone)
  const clock = clockText(fields)
  if (clock) return `${days || t('jobs.short.daily')} ${clock} ${zone}`
  const within = withinHour(fields, t)
  if (!within) return undefined
  if (hours.length === 24) return [days, within, days && zone].filter(Boolean).join(' ')
  const round = hours.length > 1 && minutes.length <= LISTED ? roundStepOf(hours, 24) : undefined
  if (round) return [days, hoursText(fields, round, t), zone].filter(Boolean).join(' ')
  // Between the first and the last of each day.
  const step = hours.length === 1 ? 1 : stepOf(hours)
  const every = step === 1 ? within : step && minutes.length === 1 ? everyText(step * HOUR_MS, t) : undefined
  const span = `${clockOf(hours[0], minutes[0])}–${clockOf(hours.at(-1), minutes.at(-1))}`
  return every && [days, span, zone, minutes.length === 1 && step === 1 ? t('jobs.short.each_h') : every].filter(Boolean).join(' ')
}

const HOUR_MS = 3_600_000
const two = (value = 0) => String(value).padStart(2, '0')
const clockOf = (hour?: number, minute?: number) => `${two(hour)}:${two(minute)}`
const secondText = (second = 0) => (second === 0 ? '' : `:${two(second)}`)

/** ":05", ":05:30" */
function minuteList({ minutes, seconds }: CronFields): string {
  return minutes.map((minute) => `:${two(minute)}${secondText(seconds[0])}`).join(', ')
}

/** "every 5 min": how it fires within each hour. */
function withinHour(fields: CronFields, t: TFunction): string | undefined {
  const { seconds, minutes } = fields
  const [second = 0] = seconds
  if (minutes.length === 60) {
    if (seconds.length === 1) return everyText(60_000, t)
    const step = roundStepOf(seconds, 60)
    if (step) return everyText(step * 1_000, t)
    return seconds.length <= LISTED ? t('jobs.short.atSeconds', { every: everyText(60_000, t), list: seconds.join(', ') }) : undefined
  }
  if (seconds.length > 1) return undefined
  const [first = 0] = minutes
  const step = roundStepOf(minutes, 60)
  if (step) {
    const every = everyText(step * 60_000, t)
    return first + second > 0 ? t('jobs.short.from', { every, at: `:${two(first)}${secondText(second)}` }) : every
  }
  if (minutes.length > LISTED) return undefined
  const hourly = t('jobs.short.each_h')
  return minutes.length === 1 && first + second === 0 ? hourly : `${hourly} ${minuteList(fields)}`
}

/** "every 6 h :25", "every 6 h from 04:17" */
function hoursText(fields: CronFields, step: number, t: TFunction): string | undefined {
  const { seconds, minutes, hours } = fields
  if (seconds.length > 1) return undefined
  const every = everyText(step * HOUR_MS, t)
  const [first = 0] = hours
  if (first > 0 && minutes.length === 1) return t('jobs.short.from', { every, at: clockOf(first, minutes[0]) + secondText(seconds[0]) })
  if (first > 0) return undefined
  return minutes.length === 1 && minutes[0] === 0 && seconds[0] === 0 ? every : `${every} ${minuteList(fields)}`
}

/** "02:00", "02:00, 14:00": a few times of the day. */
function clockText({ seconds, minutes, hours }: CronFields): string | undefined {
  if (seconds.length > 1 || hours.length * minutes.length > LISTED || roundStepOf(hours, 24) === 24 / LISTED) return undefined
  return hours.flatMap((hour) => minutes.map((minute) => clockOf(hour, minute) + secondText(seconds[0]))).join(', ')
}

/** "Mon–Fri"; "" for every day; undefined for days without a short form. */
function daysText(fields: CronFields, t: TFunction, lang: Lang): string | undefined {
  const { day, month, weekday } = fields
  if (day === '*' && month === '*') return weekday === '*' ? '' : weekdaysText(fields, lang)
  if (weekday !== '*') return undefined
  if (day === 'L' && month === '*') return t('jobs.short.lastDay')
  const days = valuesOf(day, 1, 31)
  if (!days || days.length > LISTED) return undefined
  const listed = days.join(', ')
  if (month === '*') return t('jobs.short.monthly', { day: listed })
  const months = valuesOf(MONTHS.reduce((text, name, i) => text.replaceAll(name, String(i + 1)), month), 1, 12)
  if (!months || months.length > MONTHS_LISTED) return undefined
  // Only the month comes from a date: 31 February has to stay as it is written.
  const format = new Intl.DateTimeFormat(lang === 'zh' ? 'zh-CN' : 'en-GB', { month: 'short', timeZone: 'UTC' })
  return t('jobs.short.date', { day: listed, month: months.map((one) => format.format(Date.UTC(2024, one - 1, 1))).join(', ') })
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

const isNumber = (text: string) => /^\d+$/.test(text)

function weekdaysText({ weekday, quartz }: CronFields, lang: Lang): string | undefined {
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
