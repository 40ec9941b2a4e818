// The fields of a cron expression, as a list needs them for its short text.
import type { Schedule } from '../../api/types'

export interface CronFields {
  /** Values of the clock in ascending order. */
  seconds: number[]
  minutes: number[]
  hours: number[]
  day: string
  month: string
  weekday: string
  quartz: boolean
}

const ALIASES: Record<string, string> = { '@hourly': '0 * * * *', '@daily': '0 0 * * *', '@midnight': '0 0 * * *', '@weekly': '0 0 * * 0', '@monthly': '0 0 1 * *', '@yearly': '0 0 1 1 *', '@annually': '0 0 1 1 *' }

/** undefined: a year is given, or a field of the clock is not made of numbers, ranges and steps. */
export function cronFields(schedule: Schedule): CronFields | undefined {
  const text = (schedule.expr ?? '').trim()
  const parts = (ALIASES[text.toLowerCase()] ?? text).toUpperCase().split(/\s+/)
  if (parts.length === 5) parts.unshift('0')
  if (parts.length === 7 && parts[6] === '*') parts.pop()
  if (parts.length !== 6) return undefined
  const [second = '', minute = '', hour = '', day = '', month = '', weekday = ''] = parts.map((part) => (part === '?' ? '*' : part))
  const seconds = valuesOf(second, 0, 59)
  const minutes = valuesOf(minute, 0, 59)
  const hours = valuesOf(hour, 0, 23)
  return seconds && minutes && hours && { seconds, minutes, hours, day, month, weekday, quartz: schedule.dialect === 'quartz' }
}

const PART = /^(?:\*|(\d+)(?:-(\d+))?)(?:\/(\d+))?$/

/** All values of a field, each once and in order; undefined for anything else than numbers. */
export function valuesOf(field: string, min: number, max: number): number[] | undefined {
  const all = new Set<number>()
  for (const part of field.split(',')) {
    const match = PART.exec(part)
    if (!match) return undefined
    const [, first, last, every] = match
    const from = first === undefined ? min : Number(first)
    const to = last !== undefined ? Number(last) : first === undefined || every !== undefined ? max : from
    const step = Number(every ?? 1)
    if (from < min || to > max || from > to || step < 1) return undefined
    for (let value = from; value <= to; value += step) all.add(value)
  }
  return [...all].toSorted((a, b) => a - b)
}

/** The distance of the values if it is always the same; undefined for other values and for a single one. */
export function stepOf(values: readonly number[]): number | undefined {
  const [first, second] = values
  if (first === undefined || second === undefined) return undefined
  const step = second - first
  return values.every((value, i) => value === first + i * step) ? step : undefined
}

/** As stepOf, for values that go on in the same steps after the end of the hour or the day. */
export function roundStepOf(values: readonly number[], of: number): number | undefined {
  const step = stepOf(values)
  return step !== undefined && step * values.length === of ? step : undefined
}
