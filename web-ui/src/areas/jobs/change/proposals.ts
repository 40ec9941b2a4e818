// What only some pages ask of proposals of code: not part of what every page loads.
import { http, take } from '../../../api/client'
import { at } from '../../../api/endpoints'
import { list, SLOW_MS } from '../../../api/queries'
import type * as T from '../../../api/types'

export const proposalApi = {
  declaration: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/jobs/{id}/declaration', { params: at(id), signal })),
  giveBackJob: (id: T.Id, hash: string) => take(http.POST('/api/v1/jobs/{id}/give-back', { params: at(id), body: { hash } })),
  proposals: (signal?: AbortSignal) => take(http.GET('/api/v1/job-proposals', { params: { query: { limit: 200 } }, signal })),
  acceptProposal: (id: T.Id, hash: string) => take(http.POST('/api/v1/job-proposals/{id}/accept', { params: at(id), body: { hash } })),
  declineProposal: (id: T.Id, hash: string) => take(http.POST('/api/v1/job-proposals/{id}/decline', { params: at(id), body: { hash } })),
}

export const proposalQueries = {
  declaration: (id: T.Id, revision: number) => list(['job', id, 'declaration', revision], (signal) => proposalApi.declaration(id, signal), SLOW_MS),
  proposals: () => list(['proposals'], (signal) => proposalApi.proposals(signal), SLOW_MS),
}
