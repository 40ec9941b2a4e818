// One function per API operation, named as the operation reads. No caching
// and no React here: queries.ts has that.
import { http, present, take } from './client'
import type { paths } from './schema'
import { setSession } from './session'
import type * as T from './types'

export type Get<P extends keyof paths> = paths[P] extends { get: { parameters: { query?: infer Q } } } ? NonNullable<Q> : never
export type Body<P extends keyof paths, M extends 'post' | 'patch'> = paths[P] extends Record<M, { requestBody?: { content: { 'application/json': infer B } } }> ? B : never

export type JobsQuery = Get<'/api/v1/jobs'>
export type RunsQuery = Get<'/api/v1/runs'>
export type LogQuery = Get<'/api/v1/runs/{id}/log'>
export type ExecutorsQuery = Get<'/api/v1/executors'>
export type InstancesQuery = Get<'/api/v1/executors/{id}/instances'>
export type TimersQuery = Get<'/api/v1/timers'>
export type DeliveriesQuery = Get<'/api/v1/deliveries'>

/** What is taken although the executor's catalogue does not have it. */
export interface Lenient {
  allowUnknownHandler?: true
  allowUnfitInput?: true
}

/** The parameters of an address with an id. */
export const at = (id: T.Id) => ({ path: { id } })

/** How many of its newest runs a job's page shows. */
const RUNS_OF_JOB = 60

export const api = {
  async login(username: string, password: string, tenant?: string) {
    const login = await take(http.POST('/api/v1/auth/login', { body: { username, password, tenant } }))
    setSession(login)
    return login
  },
  async logout() {
    try {
      await take(http.POST('/api/v1/auth/logout'))
    } finally {
      setSession(null)
    }
  },
  changePassword: (current: string, next: string) => take(http.POST('/api/v1/auth/password', { body: { current, new: next } })),
  async switchTenant(tenant: string) {
    const login = await take(http.POST('/api/v1/auth/tenant', { body: { tenant } }))
    setSession(login)
    return login
  },
  me: (signal?: AbortSignal) => take(http.GET('/api/v1/me', { signal })),
  setPreferences: (body: T.Preferences) => take(http.PUT('/api/v1/me/preferences', { body })),

  myInvitations: (signal?: AbortSignal) => take(http.GET('/api/v1/me/invitations', { signal })),
  acceptInvitation: (id: T.Id) => take(http.POST('/api/v1/me/invitations/{id}/accept', { params: at(id) })),
  declineInvitation: (id: T.Id) => take(http.POST('/api/v1/me/invitations/{id}/decline', { params: at(id) })),

  executors: (query: ExecutorsQuery, signal?: AbortSignal) => take(http.GET('/api/v1/executors', { params: { query: present(query) }, signal })),
  executor: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/executors/{id}', { params: at(id), signal })),
  instances: (id: T.Id, query: InstancesQuery, signal?: AbortSignal) =>
    take(http.GET('/api/v1/executors/{id}/instances', { params: { ...at(id), query: present(query) }, signal })),

  jobs: (query: JobsQuery, signal?: AbortSignal) =>
    take(http.GET('/api/v1/jobs', { params: { query: present(query) }, signal })) as Promise<T.Page<T.Job>>,
  job: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/jobs/{id}', { params: { ...at(id), query: { recent: RUNS_OF_JOB } }, signal })) as Promise<T.Job>,
  startSamples: () => take(http.POST('/api/v1/samples')),
  createJob: (body: Body<'/api/v1/jobs', 'post'>, allow: Lenient = {}) =>
    take(http.POST('/api/v1/jobs', { params: { query: allow }, body })) as Promise<T.Job>,
  updateJob: (id: T.Id, revision: number, body: T.JobWrite, allow: Lenient = {}) =>
    take(
      http.PUT('/api/v1/jobs/{id}', {
        params: { ...at(id), header: { 'If-Match': `"${revision}"` }, query: allow },
        body,
      }),
    ) as Promise<T.Job>,
  deleteJob: (id: T.Id) => take(http.DELETE('/api/v1/jobs/{id}', { params: at(id) })),
  pauseJob: (id: T.Id, note?: string) => take(http.POST('/api/v1/jobs/{id}/pause', { params: at(id), body: { note } })) as Promise<T.Job>,
  resumeJob: (id: T.Id) => take(http.POST('/api/v1/jobs/{id}/resume', { params: at(id) })) as Promise<T.Job>,
  runJob: (id: T.Id, body: Body<'/api/v1/jobs/{id}/run', 'post'>, idempotencyKey: string, allowUnfitInput?: boolean) =>
    take(http.POST('/api/v1/jobs/{id}/run', { params: { ...at(id), header: { 'Idempotency-Key': idempotencyKey }, query: present({ allowUnfitInput }) }, body })),
  revisions: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/jobs/{id}/revisions', { params: { ...at(id), query: { limit: 100 } }, signal })),
  jobEvents: (id: T.Id, cursor: string | undefined, signal?: AbortSignal) =>
    take(http.GET('/api/v1/jobs/{id}/events', { params: { ...at(id), query: present({ limit: 50, cursor }) }, signal })),
  nextFires: (id: T.Id, n: number, signal?: AbortSignal) => take(http.GET('/api/v1/jobs/{id}/next-fires', { params: { ...at(id), query: { n } }, signal })),
  previewSchedule: (schedule: T.ScheduleSpec, n: number, signal?: AbortSignal) =>
    take(http.POST('/api/v1/schedules/preview', { body: { schedule, n }, signal })),

  runs: (query: RunsQuery, signal?: AbortSignal) => take(http.GET('/api/v1/runs', { params: { query: present(query) }, signal })),
  run: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/runs/{id}', { params: at(id), signal })) as Promise<T.RunDetail>,
  runParts: (id: T.Id, limit: number, signal?: AbortSignal) => take(http.GET('/api/v1/runs/{id}/parts', { params: { ...at(id), query: { limit } }, signal })),
  runLog: (id: T.Id, query: LogQuery, signal?: AbortSignal) => take(http.GET('/api/v1/runs/{id}/log', { params: { ...at(id), query }, signal })),
  downloadLog: (id: T.Id) => take<Blob>(http.GET('/api/v1/runs/{id}/log/download', { params: at(id), parseAs: 'blob' })),
  cancelRun: (id: T.Id, reason?: string) => take(http.POST('/api/v1/runs/{id}/cancel', { params: at(id), body: { reason } })),
  retryRun: (id: T.Id, body: Body<'/api/v1/runs/{id}/retry', 'post'>, allowUnfitInput?: boolean) =>
    take(http.POST('/api/v1/runs/{id}/retry', { params: { ...at(id), query: present({ allowUnfitInput }) }, body })),

  overview: (signal?: AbortSignal) => take(http.GET('/api/v1/overview', { signal })),
  version: (signal?: AbortSignal) => take(http.GET('/api/v1/version', { signal })),
}
