// One function per API operation, named as the operation reads. No caching
// and no React here: queries.ts has that.
import { http, present, take } from './client'
import type { paths } from './schema'
import { setSession } from './session'
import type * as T from './types'

type Get<P extends keyof paths> = paths[P] extends { get: { parameters: { query?: infer Q } } } ? NonNullable<Q> : never
type Body<P extends keyof paths, M extends 'post' | 'patch'> = paths[P] extends Record<M, { requestBody?: { content: { 'application/json': infer B } } }> ? B : never

export type JobsQuery = Get<'/api/v1/jobs'>
export type RunsQuery = Get<'/api/v1/runs'>
export type LogQuery = Get<'/api/v1/runs/{id}/log'>
export type ExecutorsQuery = Get<'/api/v1/executors'>
export type InstancesQuery = Get<'/api/v1/executors/{id}/instances'>
export type DeliveriesQuery = Get<'/api/v1/deliveries'>

/** What is taken although the executor's catalogue does not have it. */
export interface Lenient {
  allowUnknownHandler?: true
  allowUnfitInput?: true
}

const at = (id: T.Id) => ({ path: { id } })

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
  myInvitations: (signal?: AbortSignal) => take(http.GET('/api/v1/me/invitations', { signal })),
  acceptInvitation: (id: T.Id) => take(http.POST('/api/v1/me/invitations/{id}/accept', { params: at(id) })),
  declineInvitation: (id: T.Id) => take(http.POST('/api/v1/me/invitations/{id}/decline', { params: at(id) })),

  tenants: (signal?: AbortSignal) => take(http.GET('/api/v1/tenants', { signal })),
  createTenant: (body: Body<'/api/v1/tenants', 'post'>) => take(http.POST('/api/v1/tenants', { body })),

  executors: (query: ExecutorsQuery, signal?: AbortSignal) => take(http.GET('/api/v1/executors', { params: { query: present(query) }, signal })),
  createExecutor: (body: Body<'/api/v1/executors', 'post'>) => take(http.POST('/api/v1/executors', { body })),
  executor: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/executors/{id}', { params: at(id), signal })),
  instances: (id: T.Id, query: InstancesQuery, signal?: AbortSignal) =>
    take(http.GET('/api/v1/executors/{id}/instances', { params: { ...at(id), query: present(query) }, signal })),
  joinTokens: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/executors/{id}/join-tokens', { params: at(id), signal })),
  createJoinToken: (id: T.Id, body: Body<'/api/v1/executors/{id}/join-tokens', 'post'>) =>
    take(http.POST('/api/v1/executors/{id}/join-tokens', { params: at(id), body })),
  deleteJoinToken: (id: T.Id, tokenId: T.Id) =>
    take(http.DELETE('/api/v1/executors/{id}/join-tokens/{tokenId}', { params: { path: { id, tokenId } } })),
  denials: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/executors/{id}/denials', { params: { ...at(id), query: { limit: 200 } }, signal })),
  createDenial: (id: T.Id, body: Body<'/api/v1/executors/{id}/denials', 'post'>) => take(http.POST('/api/v1/executors/{id}/denials', { params: at(id), body })),
  deleteDenial: (id: T.Id, denialId: T.Id) => take(http.DELETE('/api/v1/executors/{id}/denials/{denialId}', { params: { path: { id, denialId } } })),

  jobs: (query: JobsQuery, signal?: AbortSignal) =>
    take(http.GET('/api/v1/jobs', { params: { query: present(query) }, signal })) as Promise<T.Page<T.Job>>,
  job: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/jobs/{id}', { params: at(id), signal })) as Promise<T.Job>,
  createJob: (body: T.JobWrite & { state?: T.JobState }, allow: Lenient = {}) =>
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
  proposals: (signal?: AbortSignal) => take(http.GET('/api/v1/job-proposals', { params: { query: { limit: 200 } }, signal })),
  acceptProposal: (id: T.Id, hash: string) => take(http.POST('/api/v1/job-proposals/{id}/accept', { params: at(id), body: { hash } })),
  declineProposal: (id: T.Id, hash: string) => take(http.POST('/api/v1/job-proposals/{id}/decline', { params: at(id), body: { hash } })),
  declaration: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/jobs/{id}/declaration', { params: at(id), signal })),
  giveBackJob: (id: T.Id, hash: string) => take(http.POST('/api/v1/jobs/{id}/give-back', { params: at(id), body: { hash } })),
  revisions: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/jobs/{id}/revisions', { params: { ...at(id), query: { limit: 100 } }, signal })),
  nextFires: (id: T.Id, n: number, signal?: AbortSignal) => take(http.GET('/api/v1/jobs/{id}/next-fires', { params: { ...at(id), query: { n } }, signal })),
  previewSchedule: (schedule: T.ScheduleSpec, n: number, signal?: AbortSignal) =>
    take(http.POST('/api/v1/schedules/preview', { body: { schedule, n }, signal })),

  explainFire: (id: T.Id, instant: string, signal?: AbortSignal) => take(http.GET('/api/v1/jobs/{id}/explain', { params: { ...at(id), query: { at: instant } }, signal })),
  explainRun: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/runs/{id}/explain', { params: at(id), signal })),

  backfills: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/jobs/{id}/backfills', { params: at(id), signal })),
  /** With dryRun nothing is written: it says what would be. */
  backfillJob: (id: T.Id, body: T.BackfillRequest, signal?: AbortSignal) => take(http.POST('/api/v1/jobs/{id}/backfill', { params: at(id), body, signal })),
  cancelBackfill: (id: T.Id) => take(http.POST('/api/v1/backfills/{id}/cancel', { params: at(id) })),

  calendars: (query: Get<'/api/v1/calendars'>, signal?: AbortSignal) => take(http.GET('/api/v1/calendars', { params: { query: present(query) }, signal })),
  calendar: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/calendars/{id}', { params: at(id), signal })),
  calendarVersions: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/calendars/{id}/versions', { params: { ...at(id), query: { limit: 50 } }, signal })),
  calendarJobs: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/calendars/{id}/jobs', { params: at(id), signal })),
  createCalendar: (body: T.CalendarSpec) => take(http.POST('/api/v1/calendars', { body })),
  updateCalendar: (id: T.Id, version: number, body: T.CalendarSpec) =>
    take(http.PUT('/api/v1/calendars/{id}', { params: { ...at(id), header: { 'If-Match': `"${version}"` } }, body })),
  importCalendar: (id: T.Id, version: number, body: T.ImportCalendar) =>
    take(http.POST('/api/v1/calendars/{id}/import', { params: { ...at(id), header: { 'If-Match': `"${version}"` } }, body })),
  deleteCalendar: (id: T.Id) => take(http.DELETE('/api/v1/calendars/{id}', { params: at(id) })),

  scripts: (query: Get<'/api/v1/scripts'>, signal?: AbortSignal) => take(http.GET('/api/v1/scripts', { params: { query: present(query) }, signal })),
  script: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/scripts/{id}', { params: at(id), signal })),
  scriptRevisions: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/scripts/{id}/revisions', { params: { ...at(id), query: { limit: 100 } }, signal })),
  scriptDiff: (id: T.Id, from: number, to: number, signal?: AbortSignal) => take(http.GET('/api/v1/scripts/{id}/diff', { params: { ...at(id), query: { from, to } }, signal })),
  scriptJobs: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/scripts/{id}/jobs', { params: at(id), signal })),
  createScript: (body: T.ScriptCreate) => take(http.POST('/api/v1/scripts', { body })),
  updateScript: (id: T.Id, revision: number, body: { content: string; description: string; note: string }) =>
    take(http.PUT('/api/v1/scripts/{id}', { params: { ...at(id), header: { 'If-Match': `"${revision}"` } }, body })),
  restoreScript: (id: T.Id, revision: number, note: string) => take(http.POST('/api/v1/scripts/{id}/restore', { params: at(id), body: { revision, note } })),
  deleteScript: (id: T.Id) => take(http.DELETE('/api/v1/scripts/{id}', { params: at(id) })),
  scriptPolicy: (signal?: AbortSignal) => take(http.GET('/api/v1/script-policy', { signal })),
  setScriptPolicy: (body: { languages: T.ScriptLanguage[]; http: boolean; note: string }) => take(http.PUT('/api/v1/script-policy', { body })),

  limits: (signal?: AbortSignal) => take(http.GET('/api/v1/limits', { signal })),
  setExecutorLimit: (id: T.Id, maxRunning: number) => take(http.PUT('/api/v1/executors/{id}/limit', { params: at(id), body: { maxRunning } })),
  quotas: (tenant: T.Id | undefined, signal?: AbortSignal) =>
    tenant ? take(http.GET('/api/v1/tenants/{id}/quotas', { params: at(tenant), signal })) : take(http.GET('/api/v1/quotas', { signal })),
  setQuota: (tenant: T.Id, kind: T.Quota['kind'], limit: number) => take(http.PUT('/api/v1/tenants/{id}/quotas', { params: at(tenant), body: { items: [{ kind, limit }] } })),
  setTenantLimit: (id: T.Id, maxRunning: number) => take(http.PUT('/api/v1/tenants/{id}/limit', { params: at(id), body: { maxRunning } })),

  runs: (query: RunsQuery, signal?: AbortSignal) => take(http.GET('/api/v1/runs', { params: { query: present(query) }, signal })),
  run: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/runs/{id}', { params: at(id), signal })) as Promise<T.RunDetail>,
  runParts: (id: T.Id, limit: number, signal?: AbortSignal) => take(http.GET('/api/v1/runs/{id}/parts', { params: { ...at(id), query: { limit } }, signal })),
  runLog: (id: T.Id, query: LogQuery, signal?: AbortSignal) => take(http.GET('/api/v1/runs/{id}/log', { params: { ...at(id), query }, signal })),
  downloadLog: (id: T.Id) => take<Blob>(http.GET('/api/v1/runs/{id}/log/download', { params: at(id), parseAs: 'blob' })),
  cancelRun: (id: T.Id, reason?: string) => take(http.POST('/api/v1/runs/{id}/cancel', { params: at(id), body: { reason } })),
  retryRun: (id: T.Id, body: Body<'/api/v1/runs/{id}/retry', 'post'>, allowUnfitInput?: boolean) =>
    take(http.POST('/api/v1/runs/{id}/retry', { params: { ...at(id), query: present({ allowUnfitInput }) }, body })),

  overview: (signal?: AbortSignal) => take(http.GET('/api/v1/overview', { signal })),
  deliveries: (query: DeliveriesQuery, signal?: AbortSignal) => take(http.GET('/api/v1/deliveries', { params: { query: present(query) }, signal })),
  cluster: (signal?: AbortSignal) => take(http.GET('/api/v1/cluster', { signal })),
  refusals: (signal?: AbortSignal) => take(http.GET('/api/v1/cluster/refusals', { signal })),
  confirmClock: () => take(http.POST('/api/v1/cluster/confirm-clock')),
  version: (signal?: AbortSignal) => take(http.GET('/api/v1/version', { signal })),
}
