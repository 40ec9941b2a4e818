// One function per API operation, named as the operation reads. No caching
// and no React here: queries.ts has that.
import { call, download, type CallOptions, type Query } from './client'
import { setSession } from './session'
import type * as T from './types'

const get = <R>(path: string, query?: Query, signal?: AbortSignal) => call<R>('GET', path, { query, signal })
const post = <R>(path: string, body?: unknown, more: CallOptions = {}) =>
  call<R>('POST', path, { ...more, body: body ?? {} })
const del = (path: string) => call<void>('DELETE', path)

export const api = {
  async login(username: string, password: string, tenant?: string) {
    const login = await post<T.Login>('/auth/login', { username, password, tenant: tenant || undefined }, { anonymous: true })
    setSession(login)
    return login
  },
  async logout() {
    try {
      await post<void>('/auth/logout')
    } finally {
      setSession(null)
    }
  },
  changePassword: (current: string, next: string) => post<void>('/auth/password', { current, new: next }),
  async switchTenant(tenant: string) {
    const login = await post<T.Login>('/auth/tenant', { tenant })
    setSession(login)
    return login
  },
  me: (signal?: AbortSignal) => get<T.Me>('/me', undefined, signal),

  apiKeys: (query?: Query, signal?: AbortSignal) => get<T.Page<T.ApiKey>>('/api-keys', query, signal),
  createApiKey: (body: { name: string; role: T.Role; expiresAt?: string }) =>
    post<T.ApiKey & { secret: string }>('/api-keys', body),
  deleteApiKey: (id: T.Id) => del(`/api-keys/${id}`),

  users: (query?: Query, signal?: AbortSignal) => get<T.Page<T.User>>('/users', query, signal),
  createUser: (body: { username: string; role: T.Role; password?: string }) =>
    post<T.User & { password?: string }>('/users', body),
  updateUser: (id: T.Id, body: { role?: T.Role; disabled?: boolean; password?: string }) =>
    call<T.User & { password?: string }>('PATCH', `/users/${id}`, { body }),
  deleteUser: (id: T.Id) => del(`/users/${id}`),

  executors: (query?: Query, signal?: AbortSignal) => get<T.Page<T.Executor>>('/executors', query, signal),
  createExecutor: (body: { name: string; description?: string }) => post<T.Executor>('/executors', body),
  executor: (id: T.Id, signal?: AbortSignal) => get<T.ExecutorDetail>(`/executors/${id}`, undefined, signal),
  instances: (id: T.Id, query?: Query, signal?: AbortSignal) =>
    get<T.Page<T.Instance>>(`/executors/${id}/instances`, query, signal),
  joinTokens: (id: T.Id, signal?: AbortSignal) =>
    get<T.Page<T.JoinToken>>(`/executors/${id}/join-tokens`, undefined, signal),
  createJoinToken: (id: T.Id, body: { name?: string; expiresAt?: string; maxUses?: number }) =>
    post<T.JoinToken & { secret: string }>(`/executors/${id}/join-tokens`, body),
  deleteJoinToken: (id: T.Id, tokenId: T.Id) => del(`/executors/${id}/join-tokens/${tokenId}`),

  jobs: (query?: Query, signal?: AbortSignal) => get<T.Page<T.Job>>('/jobs', query, signal),
  job: (id: T.Id, signal?: AbortSignal) => get<T.Job>(`/jobs/${id}`, undefined, signal),
  createJob: (body: T.JobWrite) => post<T.Job>('/jobs', body),
  updateJob: (id: T.Id, revision: number, body: T.JobWrite) => call<T.Job>('PUT', `/jobs/${id}`, { body, revision }),
  deleteJob: (id: T.Id) => del(`/jobs/${id}`),
  pauseJob: (id: T.Id, note?: string) => post<T.Job>(`/jobs/${id}/pause`, { note: note || undefined }),
  resumeJob: (id: T.Id) => post<T.Job>(`/jobs/${id}/resume`),
  runJob: (id: T.Id, body: { input?: T.Json; instanceId?: T.Id; note?: string }, idempotencyKey: string) =>
    post<T.Run>(`/jobs/${id}/run`, body, { idempotencyKey }),
  revisions: (id: T.Id, query?: Query, signal?: AbortSignal) =>
    get<T.Page<T.Revision>>(`/jobs/${id}/revisions`, query, signal),
  nextFires: (id: T.Id, n: number, signal?: AbortSignal) => get<T.NextFires>(`/jobs/${id}/next-fires`, { n }, signal),
  previewSchedule: (schedule: T.ScheduleSpec, n: number, signal?: AbortSignal) =>
    call<T.Preview>('POST', '/schedules/preview', { body: { schedule, n }, signal }),

  runs: (query?: Query, signal?: AbortSignal) => get<T.Page<T.Run>>('/runs', query, signal),
  run: (id: T.Id, signal?: AbortSignal) => get<T.RunDetail>(`/runs/${id}`, undefined, signal),
  runLog: (id: T.Id, query: Query, signal?: AbortSignal) => get<T.LogPage>(`/runs/${id}/log`, query, signal),
  downloadLog: (id: T.Id) => download(`/runs/${id}/log/download`),
  cancelRun: (id: T.Id, reason?: string) => post<T.Run>(`/runs/${id}/cancel`, { reason: reason || undefined }),
  retryRun: (id: T.Id, body: { input?: T.Json }) => post<T.Run>(`/runs/${id}/retry`, body),

  tenants: (signal?: AbortSignal) => get<T.Page<T.Tenant>>('/tenants', undefined, signal),
  createTenant: (body: { name: string }) => post<T.Tenant>('/tenants', body),

  overview: (signal?: AbortSignal) => get<T.Overview>('/overview', undefined, signal),
  deliveries: (query?: Query, signal?: AbortSignal) => get<T.Page<T.Delivery>>('/deliveries', query, signal),
  nodes: (signal?: AbortSignal) => get<T.Page<T.Node>>('/nodes', undefined, signal),
  version: (signal?: AbortSignal) => get<T.Version>('/version', undefined, signal),
}
