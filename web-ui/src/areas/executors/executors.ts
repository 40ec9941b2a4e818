// What is done to executors and their instances: not part of what every page loads.
import { http, present, take } from '../../api/client'
import { at, type Body, type Get } from '../../api/endpoints'
import { list, queryClient } from '../../api/queries'
import type * as T from '../../api/types'

type Versioned = Pick<T.Executor, 'id' | 'version'>
const change = ({ id, version }: Versioned) => ({ ...at(id), header: { 'If-Match': `"${version}"` } })

export const executorApi = {
  create: (body: Body<'/api/v1/executors', 'post'>) => take(http.POST('/api/v1/executors', { body })),
  rename: (one: Versioned, name: string) => take(http.PATCH('/api/v1/executors/{id}', { params: change(one), body: { name } })),
  allowCallbacks: (one: Versioned, callbacksTo: string[]) => take(http.PATCH('/api/v1/executors/{id}', { params: change(one), body: { callbacksTo } })),
  disable: (one: Versioned, note: string) => take(http.POST('/api/v1/executors/{id}/disable', { params: change(one), body: { note } })),
  enable: (one: Versioned) => take(http.POST('/api/v1/executors/{id}/enable', { params: change(one) })),
  /** jobs, instances: they go too; without, it is refused while there are any. */
  remove: (one: Versioned, jobs: boolean, instances: boolean) =>
    take(http.DELETE('/api/v1/executors/{id}', { params: { ...change(one), query: { ...(jobs ? { jobs: 'delete' } : {}), ...(instances ? { instances: 'end' } : {}) } } })),
  forget: (id: T.Id, name: string) => take(http.DELETE('/api/v1/executors/{id}/former-names/{name}', { params: { path: { id, name } } })),
  /** Those of all executors, lost ones first. */
  allInstances: (query: Get<'/api/v1/instances'>, signal?: AbortSignal) => take(http.GET('/api/v1/instances', { params: { query: present(query) }, signal })),
  drain: (id: T.Id) => take(http.PUT('/api/v1/instances/{id}/drain', { params: at(id) })),
  /** Drains it, ends its sessions and keeps its process out; the answer names what it ran. */
  removeInstance: (id: T.Id, reason: string) => take(http.DELETE('/api/v1/instances/{id}', { params: { ...at(id), query: present({ reason }) } })),
  undrain: (id: T.Id) => take(http.DELETE('/api/v1/instances/{id}/drain', { params: at(id) })),
}

export const fleetQuery = (query: Get<'/api/v1/instances'>) => list(['executors', 'instances', query], (signal) => executorApi.allInstances(query, signal))

export function refreshExecutors(): void {
  for (const key of ['executor', 'executors', 'jobs']) void queryClient.invalidateQueries({ queryKey: [key] })
}
