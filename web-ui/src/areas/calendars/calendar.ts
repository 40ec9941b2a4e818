// Days and windows of a calendar as lines of text, which people type, paste
// and sort faster than they click; and what two versions differ in.
import type { TFunction } from 'i18next'
import type { Blackout, CalendarDay, CalendarSpec, Exclusion, Weekday } from '../../api/types'
import { instantToWall, wallToInstant } from '../../lib/time'

/** Why a line is not understood; the texts are in the page's language. */
export interface LineFault {
  /** From 1. */
  line: number
  kind: 'bad' | 'date' | 'order' | 'long'
  text: string
}

export interface Parsed<T> {
  items: T[]
  fault?: LineFault
}

/** What the server takes when nothing is said. */
export const DEFAULT_WEEKEND: Weekday[] = ['SAT', 'SUN']

const DAY_MS = 86_400_000
const MAX_RANGE_DAYS = 366
const DAY_LINE = /^(\d{4}-\d{2}-\d{2})(?:\s*\.\.\s*(\d{4}-\d{2}-\d{2}))?(?:\s+(.*))?$/
const WINDOW_LINE = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}(?::\d{2})?)\s*\.\.\s*(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}(?::\d{2})?)(?:\s+(.*))?$/

/** Midnight in UTC of a date, or NaN when there is no such date. */
function dayOf(date: string): number {
  const at = Date.parse(`${date}T00:00:00Z`)
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(date) ? at : Number.NaN
}

function parseLines<T>(text: string, read: (line: string) => T[] | LineFault['kind']): Parsed<T> {
  const items: T[] = []
  for (const [i, raw] of text.split('\n').entries()) {
    const line = raw.trim()
    if (line === '') continue
    const got = read(line)
    if (typeof got === 'string') return { items, fault: { line: i + 1, kind: got, text: line.slice(0, 80) } }
    items.push(...got)
  }
  return { items }
}

/** "2026-10-01..2026-10-07 National Day": one day per date; a date that comes again is left out. */
export function parseDays(text: string): Parsed<CalendarDay> {
  const seen = new Set<string>()
  return parseLines(text, (line) => {
    const [, from, to = from, name] = DAY_LINE.exec(line) ?? []
    if (from === undefined || to === undefined) return 'bad'
    const [first, last] = [dayOf(from), dayOf(to)]
    if (Number.isNaN(first) || Number.isNaN(last)) return 'date'
    if (last < first) return 'order'
    if (last - first >= MAX_RANGE_DAYS * DAY_MS) return 'long'
    const days: CalendarDay[] = []
    for (let at = first; at <= last; at += DAY_MS) {
      const date = new Date(at).toISOString().slice(0, 10)
      if (!seen.has(date)) days.push(name ? { date, name } : { date })
      seen.add(date)
    }
    return days
  })
}

export interface DayRange {
  from: string
  to: string
  days: number
  name: string
}

/** Days of one name that follow each other become one range. */
export function rangesOf(days: CalendarDay[]): DayRange[] {
  const ranges: DayRange[] = []
  for (const day of days.toSorted((a, b) => (a.date < b.date ? -1 : 1))) {
    const last = ranges.at(-1)
    const name = day.name ?? ''
    if (last && last.name === name && dayOf(day.date) - dayOf(last.to) === DAY_MS) {
      last.to = day.date
      last.days++
    } else ranges.push({ from: day.date, to: day.date, days: 1, name })
  }
  return ranges
}

export function formatDays(days: CalendarDay[]): string {
  return rangesOf(days)
    .map(({ from, to, name }) => [from === to ? from : `${from}..${to}`, name].filter(Boolean).join(' '))
    .join('\n')
}

/** "2026-11-10 22:00 .. 2026-11-11 06:00 Sale", on the clocks of the zone. */
export function parseWindows(text: string, zone: string): Parsed<Blackout> {
  return parseLines(text, (line) => {
    const [, fromDay, fromTime, toDay, toTime, name] = WINDOW_LINE.exec(line) ?? []
    if (!fromDay || !fromTime || !toDay || !toTime) return 'bad'
    const [from, to] = [instantOf(fromDay, fromTime, zone), instantOf(toDay, toTime, zone)]
    if (from === undefined || to === undefined) return 'date'
    if (to <= from) return 'order'
    return [name ? { from, to, name } : { from, to }]
  })
}

function instantOf(day: string, time: string, zone: string): string | undefined {
  const wall = `${day}T${time.length === 5 ? `${time}:00` : time}`
  if (Number.isNaN(dayOf(day)) || Number.isNaN(Date.parse(`${wall}Z`))) return undefined
  return wallToInstant(wall, zone)
}

/** The end of a window on a clock; seconds only where there are any. */
export function formatWall(instant: string, zone: string): string {
  return instantToWall(instant, zone).replace('T', ' ').replace(/:00$/, '')
}

export function formatWindows(windows: Blackout[], zone: string): string {
  return windows
    .toSorted((a, b) => Date.parse(a.from) - Date.parse(b.from))
    .map(({ from, to, name }) => [formatWall(from, zone), '..', formatWall(to, zone), name].filter(Boolean).join(' '))
    .join('\n')
}

export interface CalendarChange {
  /** What was changed; the lists say each day and window. */
  part: 'holidays' | 'makeUpDays' | 'blackouts' | 'name' | 'description' | 'zone' | 'weekend'
  kind: 'added' | 'removed' | 'changed'
  /** The day or window in words; before and after of a plain field. */
  before: string
  after: string
}

/** A spec with the name that it has at a version. */
export type NamedCalendar = CalendarSpec & { name: string }

/** What a later version has, or has not, that an earlier one had. Instants on the clocks of the zone. */
export function diffCalendars(older: NamedCalendar, newer: NamedCalendar, zone: string): CalendarChange[] {
  const changes: CalendarChange[] = []
  for (const part of ['name', 'description', 'zone'] as const) {
    const [before, after] = [older[part] ?? '', newer[part] ?? '']
    if (before !== after) changes.push({ part, kind: 'changed', before, after })
  }
  const [before, after] = [older, newer].map((one) => (one.weekend ?? DEFAULT_WEEKEND).join(' ')) as [string, string]
  if (before !== after) changes.push({ part: 'weekend', kind: 'changed', before, after })
  for (const part of ['holidays', 'makeUpDays'] as const) {
    changes.push(...diffLists(part, older[part] ?? [], newer[part] ?? [], formatDays))
  }
  changes.push(...diffLists('blackouts', older.blackouts ?? [], newer.blackouts ?? [], (list) => formatWindows(list, zone)))
  return changes
}

function diffLists<T>(part: CalendarChange['part'], older: T[], newer: T[], say: (list: T[]) => string): CalendarChange[] {
  const key = (one: T) => JSON.stringify(Object.entries(one as object).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  const only = (list: T[], other: T[]) => {
    const known = new Set(other.map(key))
    const text = say(list.filter((one) => !known.has(key(one))))
    return text === '' ? [] : text.split('\n')
  }
  return [
    ...only(older, newer).map((before) => ({ part, kind: 'removed' as const, before, after: '' })),
    ...only(newer, older).map((after) => ({ part, kind: 'added' as const, before: '', after })),
  ]
}

/** "National Day", "weekend", "blackout until …": what of a calendar takes a fire time out. */
export function excludedBy(exclusion: Exclusion, zone: string, t: TFunction): string {
  const { kind, name, until } = exclusion
  if (kind === 'weekend') return t('calendars.weekendDay')
  if (kind === 'holiday') return name || t('calendars.holiday')
  const window = t('calendars.blackout', { until: until ? formatWall(until, zone) : '' })
  return name ? `${name} (${window})` : window
}
