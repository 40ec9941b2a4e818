// What only some pages ask of maintenance: not part of what every page loads.
import { http, take } from '../../api/client'
import { at } from '../../api/endpoints'
import { list, queryClient } from '../../api/queries'
import type * as T from '../../api/types'

/** Of what: the whole cluster, the tenant, or an executor by its id. */
export type Scope = 'cluster' | 'tenant' | { executor: T.Id }

export const maintenanceApi = {
  all: (ended: boolean, signal?: AbortSignal) => take(http.GET('/api/v1/maintenance', { params: { query: { limit: 100, ...(ended ? { ended } : {}) } }, signal })),
  start: (scope: Scope, body: T.MaintenanceRequest) =>
    scope === 'cluster'
      ? take(http.PUT('/api/v1/cluster/maintenance', { body }))
      : scope === 'tenant'
        ? take(http.PUT('/api/v1/maintenance', { body }))
        : take(http.PUT('/api/v1/executors/{id}/maintenance', { params: at(scope.executor), body })),
  end: (scope: Scope) =>
    scope === 'cluster'
      ? take(http.DELETE('/api/v1/cluster/maintenance'))
      : scope === 'tenant'
        ? take(http.DELETE('/api/v1/maintenance'))
        : take(http.DELETE('/api/v1/executors/{id}/maintenance', { params: at(scope.executor) })),
}

export const maintenanceQueries = {
  all: (ended: boolean) => list(['maintenance', ended], (signal) => maintenanceApi.all(ended, signal)),
}

/** The banner of every page comes with me. */
export function refreshMaintenance(): void {
  for (const key of ['maintenance', 'me']) void queryClient.invalidateQueries({ queryKey: [key] })
}
