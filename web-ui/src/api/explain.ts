// What only some pages ask of explanations: not part of what every page loads.
import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { http, take } from './client'
import { at } from './endpoints'
import { isFinal, list, LIST_MS } from './queries'
import type * as T from './types'

export const explainApi = {
  explainFire: (id: T.Id, instant: string, signal?: AbortSignal) => take(http.GET('/api/v1/jobs/{id}/explain', { params: { ...at(id), query: { at: instant } }, signal })),
  explainRun: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/runs/{id}/explain', { params: at(id), signal })),
}

export const explainQueries = {
  /** Follows the run: once more when its state has changed, and while it waits. */
  explainRun: (id: T.Id, state: T.RunState, lingers = false) =>
    queryOptions({
      queryKey: ['run', id, 'explain', state, lingers],
      queryFn: ({ signal }) => explainApi.explainRun(id, signal),
      refetchInterval: isFinal(state) ? false : LIST_MS,
      placeholderData: keepPreviousData,
    }),
  explainFire: (id: T.Id, at: string) => list(['job', id, 'explain', at], (signal) => explainApi.explainFire(id, at, signal)),
}
