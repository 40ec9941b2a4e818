// What only some pages ask of users, keys and tenants: not part of what every page loads.
import { http, take } from '../../api/client'
import { at, type Body } from '../../api/endpoints'
import { list, queryClient, SLOW_MS } from '../../api/queries'
import type * as T from '../../api/types'

type Versioned = Pick<T.Tenant, 'id' | 'version'>
const change = ({ id, version }: Versioned) => ({ ...at(id), header: { 'If-Match': `"${version}"` } })

/** A password that is shown once. */
export interface Shown {
  name: string
  password: string
}

export const refreshUsers = () => void queryClient.invalidateQueries({ queryKey: ['users'] })
export const refreshInvitations = () => void queryClient.invalidateQueries({ queryKey: ['invitations'] })
export const refreshKeys = () => void queryClient.invalidateQueries({ queryKey: ['api-keys'] })

export const accessApi = {
  apiKeys: (signal?: AbortSignal) => take(http.GET('/api/v1/api-keys', { signal })),
  createApiKey: (body: Body<'/api/v1/api-keys', 'post'>) => take(http.POST('/api/v1/api-keys', { body })),
  deleteApiKey: (id: T.Id) => take(http.DELETE('/api/v1/api-keys/{id}', { params: at(id) })),
  users: (signal?: AbortSignal) => take(http.GET('/api/v1/users', { signal })),
  createUser: (body: Body<'/api/v1/users', 'post'>) => take(http.POST('/api/v1/users', { body })),
  updateUser: (id: T.Id, body: Body<'/api/v1/users/{id}', 'patch'>) => take(http.PATCH('/api/v1/users/{id}', { params: at(id), body })),
  deleteUser: (id: T.Id) => take(http.DELETE('/api/v1/users/{id}', { params: at(id) })),
  invitations: (signal?: AbortSignal) => take(http.GET('/api/v1/invitations', { signal })),
  createInvitation: (body: Body<'/api/v1/invitations', 'post'>) => take(http.POST('/api/v1/invitations', { body })),
  deleteInvitation: (id: T.Id) => take(http.DELETE('/api/v1/invitations/{id}', { params: at(id) })),
  tenants: (cursor?: string, signal?: AbortSignal) => take(http.GET('/api/v1/tenants', { params: { query: { cursor } }, signal })),
  createTenant: (body: Body<'/api/v1/tenants', 'post'>) => take(http.POST('/api/v1/tenants', { body })),
  renameTenant: (one: Versioned, name: string) => take(http.PATCH('/api/v1/tenants/{id}', { params: change(one), body: { name } })),
  disableTenant: (one: Versioned, note: string) => take(http.POST('/api/v1/tenants/{id}/disable', { params: change(one), body: { note } })),
  enableTenant: (one: Versioned) => take(http.POST('/api/v1/tenants/{id}/enable', { params: change(one) })),
  /** grace: how long it can be restored, such as "168h". */
  deleteTenant: (one: Versioned, name: string, grace: string) => take(http.DELETE('/api/v1/tenants/{id}', { params: { ...change(one), query: { name, grace } } })),
  restoreTenant: (one: Versioned) => take(http.POST('/api/v1/tenants/{id}/restore', { params: change(one) })),
}

export const accessQueries = {
  users: () => list(['users'], (signal) => accessApi.users(signal), SLOW_MS),
  invitations: () => list(['invitations'], (signal) => accessApi.invitations(signal), SLOW_MS),
  apiKeys: () => list(['api-keys'], (signal) => accessApi.apiKeys(signal), SLOW_MS),
  tenants: (cursor?: string) => list(['tenants', cursor], (signal) => accessApi.tenants(cursor, signal), SLOW_MS),
}

export function refreshTenants(): void {
  for (const key of ['tenants', 'me']) void queryClient.invalidateQueries({ queryKey: [key] })
}
