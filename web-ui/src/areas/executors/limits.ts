// What only some pages ask of limits and quotas: not part of what every page loads.
import { http, take } from '../../api/client'
import { at } from '../../api/endpoints'
import { list } from '../../api/queries'
import type * as T from '../../api/types'

export const limitApi = {
  limits: (signal?: AbortSignal) => take(http.GET('/api/v1/limits', { signal })),
  setExecutorLimit: (id: T.Id, maxRunning: number) => take(http.PUT('/api/v1/executors/{id}/limit', { params: at(id), body: { maxRunning } })),
  quotas: (tenant: T.Id | undefined, signal?: AbortSignal) =>
    tenant ? take(http.GET('/api/v1/tenants/{id}/quotas', { params: at(tenant), signal })) : take(http.GET('/api/v1/quotas', { signal })),
  setQuota: (tenant: T.Id, kind: T.Quota['kind'], limit: number) => take(http.PUT('/api/v1/tenants/{id}/quotas', { params: at(tenant), body: { items: [{ kind, limit }] } })),
  setTenantLimit: (id: T.Id, maxRunning: number) => take(http.PUT('/api/v1/tenants/{id}/limit', { params: at(id), body: { maxRunning } })),
}

export const limitQueries = {
  quotas: (tenant?: T.Id) => list(['quotas', tenant], (signal) => limitApi.quotas(tenant, signal)),
  limits: () => list(['limits'], (signal) => limitApi.limits(signal)),
}
