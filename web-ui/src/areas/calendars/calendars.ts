// What only some pages ask of calendars: not part of what every page loads.
import { http, present, take } from '../../api/client'
import { at, type Get } from '../../api/endpoints'
import { list, queryClient, refreshJobs, SLOW_MS } from '../../api/queries'
import type * as T from '../../api/types'

export const calendarApi = {
  calendars: (query: Get<'/api/v1/calendars'>, signal?: AbortSignal) => take(http.GET('/api/v1/calendars', { params: { query: present(query) }, signal })),
  calendar: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/calendars/{id}', { params: at(id), signal })),
  calendarVersions: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/calendars/{id}/versions', { params: { ...at(id), query: { limit: 50 } }, signal })),
  calendarJobs: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/calendars/{id}/jobs', { params: at(id), signal })),
  createCalendar: (body: T.CalendarWrite) => take(http.POST('/api/v1/calendars', { body })),
  updateCalendar: (id: T.Id, version: number, body: T.CalendarWrite) =>
    take(http.PUT('/api/v1/calendars/{id}', { params: { ...at(id), header: { 'If-Match': `"${version}"` } }, body })),
  importCalendar: (id: T.Id, version: number, body: T.ImportCalendar) =>
    take(http.POST('/api/v1/calendars/{id}/import', { params: { ...at(id), header: { 'If-Match': `"${version}"` } }, body })),
  deleteCalendar: (id: T.Id) => take(http.DELETE('/api/v1/calendars/{id}', { params: at(id) })),
}

export const calendarQueries = {
  calendars: (cursor?: string, limit?: number) => list(['calendars', cursor, limit], (signal) => calendarApi.calendars({ cursor, limit }, signal), SLOW_MS),
  calendar: (id: T.Id) => list(['calendar', id], (signal) => calendarApi.calendar(id, signal), SLOW_MS),
  calendarVersions: (id: T.Id, version: number) => list(['calendar', id, 'versions', version], (signal) => calendarApi.calendarVersions(id, signal), SLOW_MS),
  calendarJobs: (id: T.Id) => list(['calendar', id, 'jobs'], (signal) => calendarApi.calendarJobs(id, signal), SLOW_MS),
}

/** After a change to a calendar: the jobs that use it have a new revision, too. */
export function refreshCalendars(): void {
  for (const key of ['calendars', 'calendar', 'preview']) void queryClient.invalidateQueries({ queryKey: [key] })
  refreshJobs()
}
