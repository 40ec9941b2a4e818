// Between a calendar and its form: lists as the API has them, lines as people
// write them.
import type { Calendar, CalendarSpec, CalendarWrite, Weekday } from '../../api/types'
import { DEFAULT_WEEKEND, formatDays, formatWindows, parseDays, parseWindows } from './calendar'
import { localZone } from '../../lib/time'

export const WEEKDAYS: readonly Weekday[] = ['MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT', 'SUN']

export interface CalendarFields {
  name: string
  description: string
  /** undefined: days are those of each schedule's zone. */
  zone: string | undefined
  weekend: Weekday[]
  holidays: string
  makeUpDays: string
  /** Lines on the clocks of windowZone. */
  blackouts: string
  windowZone: string
}

/** Windows are instants; without a zone of its own a calendar shows them on our clock. */
const windowZoneOf = (zone: string | undefined) => zone || localZone

export function calendarFieldsOf(stored: Pick<Calendar, 'name' | 'spec'> | undefined): CalendarFields {
  const spec = stored?.spec
  const windowZone = windowZoneOf(spec?.zone)
  return {
    name: stored?.name ?? '',
    description: spec?.description ?? '',
    zone: spec?.zone || undefined,
    weekend: spec?.weekend ?? DEFAULT_WEEKEND,
    holidays: formatDays(spec?.holidays ?? []),
    makeUpDays: formatDays(spec?.makeUpDays ?? []),
    blackouts: formatWindows(spec?.blackouts ?? [], windowZone),
    windowZone,
  }
}

/** What is written; lines with a fault have been refused by the form before. */
export function calendarWriteOf(fields: CalendarFields, labels?: Calendar['labels']): CalendarWrite {
  return { name: fields.name.trim(), ...(labels ? { labels } : {}), spec: calendarSpecOf(fields) }
}

export function calendarSpecOf(fields: CalendarFields): CalendarSpec {
  const description = fields.description.trim()
  return {
    ...(description ? { description } : {}),
    ...(fields.zone ? { zone: fields.zone } : {}),
    weekend: WEEKDAYS.filter((day) => fields.weekend.includes(day)),
    holidays: parseDays(fields.holidays).items,
    makeUpDays: parseDays(fields.makeUpDays).items,
    blackouts: parseWindows(fields.blackouts, fields.windowZone).items,
  }
}

/** The zone has changed: the windows stay the same instants, told on other clocks. Lines with a fault stay as they are. */
export function rezone(fields: CalendarFields): Pick<CalendarFields, 'blackouts' | 'windowZone'> {
  const windowZone = windowZoneOf(fields.zone)
  const { items, fault } = parseWindows(fields.blackouts, fields.windowZone)
  return { windowZone, blackouts: fault ? fields.blackouts : formatWindows(items, windowZone) }
}
