// How runs have ended, and what is overdue: not part of what every page loads.
import { serverNow } from '../lib/connection'
import { http, take } from './client'
import { list } from './queries'
import type { Id, Statistics } from './types'

const HOUR_MS = 3_600_000
const POLL_MS = 30_000
/** How many errors of a job are shown. */
const ERRORS = 10
const at = (id: Id) => ({ path: { id } })
/** The beginning of an hour some hours ago, so that an address stays the same for an hour. */
const since = (hours: number) => new Date((Math.floor(serverNow() / HOUR_MS) - hours + 1) * HOUR_MS).toISOString()

/** Whose runs are counted; those of the tenant by default. */
export interface StatisticsOf {
  jobId?: string
  executorId?: string
}

function load({ jobId, executorId }: StatisticsOf, query: { from: string; to?: string; step: Statistics['step'] }, signal: AbortSignal): Promise<Statistics> {
  if (jobId) return take(http.GET('/api/v1/jobs/{id}/statistics', { params: { ...at(jobId), query }, signal }))
  if (executorId) return take(http.GET('/api/v1/executors/{id}/statistics', { params: { ...at(executorId), query }, signal }))
  return take(http.GET('/api/v1/statistics', { params: { query }, signal }))
}

export const statisticQueries = {
  day: () => list(['statistics'], (signal) => load({}, { from: since(24), step: 'hour' }, signal), POLL_MS),
  week: (job: Id, step: 'hour' | 'day' = 'hour') => list(['job', job, 'statistics', step], (signal) => load({ jobId: job }, { from: since(7 * 24), step }, signal), POLL_MS),
  /** The errors that a job's runs of 7 days ended with. */
  errors: (job: Id) =>
    list(['job', job, 'errors'], (signal) => take(http.GET('/api/v1/jobs/{id}/statistics', { params: { ...at(job), query: { from: since(7 * 24), groupBy: 'error', top: ERRORS } }, signal })), POLL_MS),
  /** Steps from an instant to another one, in ISO 8601. */
  between: (of: StatisticsOf, from: string, to: string, step: 'hour' | 'day') => list(['statistics', of, from, to, step], (signal) => load(of, { from, to, step }, signal), POLL_MS),
  overdue: () => list(['overdue'], (signal) => take(http.GET('/api/v1/jobs/overdue', { params: { query: {} }, signal }))),
}
