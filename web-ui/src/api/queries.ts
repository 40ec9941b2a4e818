// What the pages read, as cached queries. Lists poll every few seconds, less
// often the larger they are and the longer they stay the same (transfer.ts), and
// rest while the tab is hidden (refetchInterval does so by default); a run is
// polled faster until it has finished.
import { hashKey, keepPreviousData, QueryCache, QueryClient, queryOptions } from '@tanstack/react-query'
import { api, type ExecutorsQuery, type InstancesQuery, type JobsQuery, type RunsQuery } from './endpoints'
import { ApiError } from './problem'
import { notePoll, paceOf } from './transfer'
import type { Id, RunState, Timer } from './types'
import { getConnection, subscribeConnection } from '../lib/connection'
import { FINAL_STATES } from '../lib/search'
import { failureLog } from './useQuery'

export const LIST_MS = 5_000
export const LIVE_MS = 1_000
export const SLOW_MS = 15_000
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

export function isFinal(state: RunState | Timer['state']): boolean {
  return FINAL_STATES.some((one) => one === state)
}

/** A cached query that polls. */
export const list = <T>(key: readonly unknown[], load: (signal: AbortSignal) => Promise<T>, everyMs = LIST_MS) =>
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
  revisions: (id: Id) => list(['job', id, 'revisions'], (signal) => api.revisions(id, signal), SLOW_MS),
  jobEvents: (id: Id, cursor: string | undefined) => list(['job', id, 'events', cursor], (signal) => api.jobEvents(id, cursor, signal)),
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

  executors: (query: ExecutorsQuery) => list(['executors', query], (signal) => api.executors(query, signal)),
  executor: (id: Id) => list(['executor', id], (signal) => api.executor(id, signal)),
  instances: (id: Id, query: InstancesQuery) => list(['executor', id, 'instances', query], (signal) => api.instances(id, query, signal)),

  myInvitations: () => list(['my-invitations'], (signal) => api.myInvitations(signal), SLOW_MS),
}

/** After a change to a job or a run, everything that may show it is asked again. */
export function refreshJobs(): void {
  for (const key of ['jobs', 'job', 'runs', 'overview']) void queryClient.invalidateQueries({ queryKey: [key] })
}
