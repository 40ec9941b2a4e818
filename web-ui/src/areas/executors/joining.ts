// What only some pages ask of who may join an executor: not part of what every page loads.
import { http, take } from '../../api/client'
import { at, type Body } from '../../api/endpoints'
import { list, SLOW_MS } from '../../api/queries'
import type * as T from '../../api/types'

export const joiningApi = {
  joinTokens: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/executors/{id}/join-tokens', { params: at(id), signal })),
  createJoinToken: (id: T.Id, body: Body<'/api/v1/executors/{id}/join-tokens', 'post'>) =>
    take(http.POST('/api/v1/executors/{id}/join-tokens', { params: at(id), body })),
  deleteJoinToken: (id: T.Id, tokenId: T.Id) =>
    take(http.DELETE('/api/v1/executors/{id}/join-tokens/{tokenId}', { params: { path: { id, tokenId } } })),
  denials: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/executors/{id}/denials', { params: { ...at(id), query: { limit: 200 } }, signal })),
  deleteDenial: (id: T.Id, denialId: T.Id) => take(http.DELETE('/api/v1/executors/{id}/denials/{denialId}', { params: { path: { id, denialId } } })),
}

export const joiningQueries = {
  denials: (id: T.Id) => list(['executor', id, 'denials'], (signal) => joiningApi.denials(id, signal), SLOW_MS),
  joinTokens: (id: T.Id) => list(['executor', id, 'tokens'], (signal) => joiningApi.joinTokens(id, signal), SLOW_MS),
}
