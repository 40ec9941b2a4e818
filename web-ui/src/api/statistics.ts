// How runs have ended, and what is overdue: not part of what every page loads.
import { serverNow } from '../lib/connection'
import { http, take } from './client'
import { list } from './queries'
import type { Id } from './types'

const HOUR_MS = 3_600_000
const POLL_MS = 30_000
const at = (id: Id) => ({ path: { id } })
/** The beginning of an hour some hours ago, so that an address stays the same for an hour. */
const since = (hours: number) => new Date((Math.floor(serverNow() / HOUR_MS) - hours + 1) * HOUR_MS).toISOString()

export const statisticQueries = {
  day: () => list(['statistics'], (signal) => take(http.GET('/api/v1/statistics', { params: { query: { from: since(24), step: 'hour' } }, signal })), POLL_MS),
  week: (job: Id) =>
    list(['job', job, 'statistics'], (signal) => take(http.GET('/api/v1/jobs/{id}/statistics', { params: { ...at(job), query: { from: since(7 * 24), step: 'hour' } }, signal })), POLL_MS),
  overdue: () => list(['overdue'], (signal) => take(http.GET('/api/v1/jobs/overdue', { params: { query: {} }, signal }))),
}
