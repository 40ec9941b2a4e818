// What only some pages ask of connections: not part of what every page loads.
import { http, present, take } from '../../api/client'
import { at, type Get } from '../../api/endpoints'
import { list, queryClient, SLOW_MS } from '../../api/queries'
import { scriptApi } from './scripts'
import type * as T from '../../api/types'

export const connectionApi = {
  connections: (query: Get<'/api/v1/connections'>, signal?: AbortSignal) => take(http.GET('/api/v1/connections', { params: { query: present(query) }, signal })),
  connection: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/connections/{id}', { params: at(id), signal })),
  createConnection: (body: T.ConnectionWrite) => take(http.POST('/api/v1/connections', { body })),
  updateConnection: (id: T.Id, version: number, body: T.ConnectionWrite) =>
    take(http.PUT('/api/v1/connections/{id}', { params: { ...at(id), header: { 'If-Match': `"${version}"` } }, body })),
  deleteConnection: (id: T.Id) => take(http.DELETE('/api/v1/connections/{id}', { params: at(id) })),
  testConnection: (id: T.Id, body: T.MessageTest) => take(http.POST('/api/v1/connections/{id}/test', { params: at(id), body })),
}

export const connectionQueries = {
  list: (cursor?: string) => list(['connections', cursor], (signal) => connectionApi.connections({ cursor }, signal), SLOW_MS),
  one: (id: T.Id) => list(['connection', id], (signal) => connectionApi.connection(id, signal), SLOW_MS),
  policies: () => list(['script-policy', 'history'], (signal) => scriptApi.scriptPolicies(signal), SLOW_MS),
}

export function refreshConnections(): void {
  for (const key of ['connections', 'connection']) void queryClient.invalidateQueries({ queryKey: [key] })
}
