// What only some pages ask of timers: not part of what every page loads.
import { http, present, take } from '../../api/client'
import { type Get, type TimersQuery } from '../../api/endpoints'
import { list } from '../../api/queries'
import type * as T from '../../api/types'

export const timerApi = {
  timers: (query: TimersQuery, signal?: AbortSignal) => take(http.GET('/api/v1/timers', { params: { query: present(query) }, signal })),
  timerStatistics: (query: Get<'/api/v1/timers/statistics'>, signal?: AbortSignal) => take(http.GET('/api/v1/timers/statistics', { params: { query: present(query) }, signal })),
  timerCount: (signal?: AbortSignal) => take(http.GET('/api/v1/timers/count', { signal })),
  cancelTimer: ({ executor, handler, key }: T.Timer) => take(http.POST('/api/v1/timers/{executor}/{handler}/{key}/cancel', { params: { path: { executor, handler, key } } })),
}

export const timerQueries = {
  timers: (query: TimersQuery) => list(['timers', query], (signal) => timerApi.timers(query, signal)),
  timerCount: () => list(['timers', 'count'], (signal) => timerApi.timerCount(signal)),
}
