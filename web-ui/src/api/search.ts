// The request of the search dialog, in a chunk of its own.
import { queryOptions } from '@tanstack/react-query'
import { http, take } from './client'
import type { components } from './schema'

export type SearchHit = components['schemas']['SearchHit']

export const searchApi = {
  search: (q: string, signal?: AbortSignal) => take(http.GET('/api/v1/search', { params: { query: { q } }, signal })),
}

/** It is asked once: a list of hits that changes under the hand is no help. */
export const searchQuery = (q: string) => queryOptions({ queryKey: ['search', q], queryFn: ({ signal }) => searchApi.search(q, signal), staleTime: 30_000 })
