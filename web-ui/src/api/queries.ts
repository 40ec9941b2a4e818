// What the pages read, as cached queries. Lists poll every few seconds, less
// often the larger they are and the longer they stay the same (transfer.ts), and
// rest while the tab is hidden (refetchInterval does so by default); a run is
// polled faster until it has finished.
import { hashKey, keepPreviousData, QueryCache, QueryClient, queryOptions } from '@tanstack/react-query'
import { api, type DeliveriesQuery, type ExecutorsQuery, type InstancesQuery, type JobsQuery, type RunsQuery } from './endpoints'
import { ApiError } from './problem'
import { notePoll, paceOf } from './transfer'
import type { Id, RunState } from './types'
import { getConnection, subscribeConnection } from '../lib/connection'
import { FINAL_STATES } from '../lib/search'
import { failureLog } from './useQuery'

const LIST_MS = 5_000
const LIVE_MS = 1_000
const SLOW_MS = 15_000
/** How often it is seen, on every page, whether the server answers; and while it does not. */
const BEAT_MS = 15_000
const LOST_BEAT_MS = 2_000

export const queryClient = new QueryClient({
  queryCache: new QueryCache(failureLog),
  defaultOptions: {
    mutations: { networkMode: 'always' },
    queries: {
      // The browser's word for "no network" says nothing of a server on the
      // same machine; whether it answers is seen by asking (lib/connection.ts).
      networkMode: 'always',
      staleTime: 1_000,
      // A refusal will not change by asking again; a silent server may.
      retry: (failures, error) => failures < 2 && error instanceof ApiError && (error.status === 0 || error.status >= 500),
      retryDelay: (attempt) => Math.min(500 * 2 ** attempt, 4_000),
    },
  },
})

// When the server is back, what is on the screen is asked for at once; a draft
// (readOnce) stays as it is.
let trouble = getConnection().trouble
subscribeConnection(() => {
  const before = trouble
  trouble = getConnection().trouble
  if (!before || trouble) return
  void queryClient.refetchQueries({ type: 'active', predicate: (query) => query.state.status === 'error' || query.observers.some((one) => Boolean(one.options.refetchInterval)) })
})

export function isFinal(state: RunState): boolean {
  return FINAL_STATES.includes(state)
}

const list = <T>(key: readonly unknown[], load: (signal: AbortSignal) => Promise<T>, everyMs = LIST_MS) =>
  queryOptions({
    queryKey: key,
    queryFn: async ({ signal }) => {
      const data = await load(signal)
      notePoll(hashKey(key), data)
      return data
    },
    refetchInterval: () => paceOf(hashKey(key), everyMs),
    placeholderData: keepPreviousData,
  })

/** For a draft, which stands on what was read once: polling would move it away under the person's hands. */
export const readOnce = <T extends object>(options: T) => ({ ...options, refetchInterval: false as const, refetchOnWindowFocus: false, refetchOnReconnect: false, staleTime: 0, gcTime: 0 })

export const queries = {
  me: () =>
    queryOptions({
      queryKey: ['me'],
      queryFn: ({ signal }) => api.me(signal),
      staleTime: 60_000,
      refetchInterval: () => (getConnection().trouble ? LOST_BEAT_MS : BEAT_MS),
    }),
  version: () => queryOptions({ queryKey: ['version'], queryFn: ({ signal }) => api.version(signal), staleTime: Infinity }),
  overview: () => list(['overview'], (signal) => api.overview(signal)),

  jobs: (query: JobsQuery) => list(['jobs', query], (signal) => api.jobs(query, signal)),
  job: (id: Id) =>
    queryOptions({ queryKey: ['job', id], queryFn: ({ signal }) => api.job(id, signal), refetchInterval: LIST_MS }),
  proposals: () => list(['proposals'], (signal) => api.proposals(signal), SLOW_MS),
  declaration: (id: Id, revision: number) => list(['job', id, 'declaration', revision], (signal) => api.declaration(id, signal), SLOW_MS),
  revisions: (id: Id) => list(['job', id, 'revisions'], (signal) => api.revisions(id, signal), SLOW_MS),
  nextFires: (id: Id, revision: number, n: number) =>
    list(['job', id, 'next-fires', revision, n], (signal) => api.nextFires(id, n, signal), LIST_MS),

  runs: (query: RunsQuery) => list(['runs', query], (signal) => api.runs(query, signal)),
  run: (id: Id) =>
    queryOptions({
      queryKey: ['run', id],
      queryFn: ({ signal }) => api.run(id, signal),
      refetchInterval: ({ state }) => (state.data && isFinal(state.data.state) ? (state.data.lingers ? LIST_MS : false) : LIVE_MS),
    }),

  /** The shards and hooks of a run, as long as it moves. */
  runParts: (id: Id, state: RunState, limit: number) =>
    queryOptions({
      queryKey: ['run', id, 'parts', state, limit],
      queryFn: ({ signal }) => api.runParts(id, limit, signal),
      refetchInterval: isFinal(state) ? false : LIVE_MS,
      placeholderData: keepPreviousData,
    }),

  /** Follows the run: once more when its state has changed, and while it waits. */
  explainRun: (id: Id, state: RunState, lingers = false) =>
    queryOptions({
      queryKey: ['run', id, 'explain', state, lingers],
      queryFn: ({ signal }) => api.explainRun(id, signal),
      refetchInterval: isFinal(state) ? false : LIST_MS,
      placeholderData: keepPreviousData,
    }),
  explainFire: (id: Id, at: string) => list(['job', id, 'explain', at], (signal) => api.explainFire(id, at, signal)),
  backfills: (id: Id) =>
    queryOptions({
      queryKey: ['job', id, 'backfills'],
      queryFn: ({ signal }) => api.backfills(id, signal),
      refetchInterval: ({ state }) => (state.data?.items.some((one) => one.state === 'running') ? LIVE_MS : SLOW_MS),
    }),

  calendars: (cursor?: string, limit?: number) => list(['calendars', cursor, limit], (signal) => api.calendars({ cursor, limit }, signal), SLOW_MS),
  calendar: (id: Id) => list(['calendar', id], (signal) => api.calendar(id, signal), SLOW_MS),
  calendarVersions: (id: Id, version: number) => list(['calendar', id, 'versions', version], (signal) => api.calendarVersions(id, signal), SLOW_MS),
  calendarJobs: (id: Id) => list(['calendar', id, 'jobs'], (signal) => api.calendarJobs(id, signal), SLOW_MS),

  scripts: (cursor?: string, limit?: number) => list(['scripts', cursor, limit], (signal) => api.scripts({ cursor, limit }, signal), SLOW_MS),
  script: (id: Id) => list(['script', id], (signal) => api.script(id, signal), SLOW_MS),
  scriptRevisions: (id: Id, revision: number) => list(['script', id, 'revisions', revision], (signal) => api.scriptRevisions(id, signal), SLOW_MS),
  /** Revisions never change. */
  scriptDiff: (id: Id, from: number, to: number) =>
    queryOptions({ queryKey: ['script', id, 'diff', from, to], queryFn: ({ signal }) => api.scriptDiff(id, from, to, signal), staleTime: Infinity }),
  scriptJobs: (id: Id) => list(['script', id, 'jobs'], (signal) => api.scriptJobs(id, signal), SLOW_MS),
  scriptPolicy: () => list(['script-policy'], (signal) => api.scriptPolicy(signal), SLOW_MS),

  quotas: (tenant?: Id) => list(['quotas', tenant], (signal) => api.quotas(tenant, signal)),
  limits: () => list(['limits'], (signal) => api.limits(signal)),
  refusals: () => list(['cluster', 'refusals'], (signal) => api.refusals(signal)),
  cluster: () => list(['cluster'], (signal) => api.cluster(signal), 2_000),

  executors: (query: ExecutorsQuery) => list(['executors', query], (signal) => api.executors(query, signal)),
  executor: (id: Id) => list(['executor', id], (signal) => api.executor(id, signal)),
  instances: (id: Id, query: InstancesQuery) => list(['executor', id, 'instances', query], (signal) => api.instances(id, query, signal)),
  denials: (id: Id) => list(['executor', id, 'denials'], (signal) => api.denials(id, signal), SLOW_MS),
  joinTokens: (id: Id) => list(['executor', id, 'tokens'], (signal) => api.joinTokens(id, signal), SLOW_MS),

  deliveries: (query: DeliveriesQuery) => list(['deliveries', query], (signal) => api.deliveries(query, signal)),
  users: () => list(['users'], (signal) => api.users(signal), SLOW_MS),
  invitations: () => list(['invitations'], (signal) => api.invitations(signal), SLOW_MS),
  myInvitations: () => list(['my-invitations'], (signal) => api.myInvitations(signal), SLOW_MS),
  apiKeys: () => list(['api-keys'], (signal) => api.apiKeys(signal), SLOW_MS),
  tenants: () => list(['tenants'], (signal) => api.tenants(signal), SLOW_MS),
}

/** After a change to a calendar: the jobs that use it have a new revision, too. */
export function refreshCalendars(): void {
  for (const key of ['calendars', 'calendar', 'preview']) void queryClient.invalidateQueries({ queryKey: [key] })
  refreshJobs()
}

export function refreshScripts(): void {
  for (const key of ['scripts', 'script', 'script-policy']) void queryClient.invalidateQueries({ queryKey: [key] })
}

/** After a change to a job or a run, everything that may show it is asked again. */
export function refreshJobs(): void {
  for (const key of ['jobs', 'job', 'runs', 'overview']) void queryClient.invalidateQueries({ queryKey: [key] })
}
