// What only some pages ask of backfills: not part of what every page loads.
import { queryOptions } from '@tanstack/react-query'
import { http, take } from '../../../api/client'
import { at } from '../../../api/endpoints'
import { LIVE_MS, SLOW_MS } from '../../../api/queries'
import type * as T from '../../../api/types'

export const backfillApi = {
  backfills: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/jobs/{id}/backfills', { params: at(id), signal })),
  /** With dryRun nothing is written: it says what would be. */
  backfillJob: (id: T.Id, body: T.BackfillRequest, signal?: AbortSignal) => take(http.POST('/api/v1/jobs/{id}/backfill', { params: at(id), body, signal })),
  cancelBackfill: (id: T.Id) => take(http.POST('/api/v1/backfills/{id}/cancel', { params: at(id) })),
}

export const backfillQueries = {
  backfills: (id: T.Id) =>
    queryOptions({
      queryKey: ['job', id, 'backfills'],
      queryFn: ({ signal }) => backfillApi.backfills(id, signal),
      refetchInterval: ({ state }) => (state.data?.items.some((one) => one.state === 'running') ? LIVE_MS : SLOW_MS),
    }),
}
