// Counts of jobs by state and group: only the list of jobs asks for them.
import { http, present, take } from './client'
import type { Get } from './endpoints'
import { list, SLOW_MS } from './queries'

export type JobCountsQuery = Get<'/api/v1/jobs/counts'>

export const jobCounts = (query: JobCountsQuery) =>
  list(['jobs', 'counts', query], (signal) => take(http.GET('/api/v1/jobs/counts', { params: { query: present(query) }, signal })), SLOW_MS)
