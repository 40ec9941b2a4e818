// What only some pages ask of scripts: not part of what every page loads.
import { queryOptions } from '@tanstack/react-query'
import { http, present, take } from './client'
import { at, type Get } from './endpoints'
import { list, queryClient, SLOW_MS } from './queries'
import type * as T from './types'

export const scriptApi = {
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
  scriptPolicies: (signal?: AbortSignal) => take(http.GET('/api/v1/script-policy/history', { params: { query: { limit: 50 } }, signal })),
  /** Without callbacks these stay as they are. */
  setScriptPolicy: (body: { languages: T.ScriptLanguage[]; http: boolean; note: string; callbacks?: T.CallbackPolicyWrite }) => take(http.PUT('/api/v1/script-policy', { body })),
  callbackSecret: () => take(http.GET('/api/v1/callback-secret')),
}

export const scriptQueries = {
  scripts: (cursor?: string, limit?: number) => list(['scripts', cursor, limit], (signal) => scriptApi.scripts({ cursor, limit }, signal), SLOW_MS),
  script: (id: T.Id) => list(['script', id], (signal) => scriptApi.script(id, signal), SLOW_MS),
  scriptRevisions: (id: T.Id, revision: number) => list(['script', id, 'revisions', revision], (signal) => scriptApi.scriptRevisions(id, signal), SLOW_MS),
  /** Revisions never change. */
  scriptDiff: (id: T.Id, from: number, to: number) =>
    queryOptions({ queryKey: ['script', id, 'diff', from, to], queryFn: ({ signal }) => scriptApi.scriptDiff(id, from, to, signal), staleTime: Infinity }),
  scriptJobs: (id: T.Id) => list(['script', id, 'jobs'], (signal) => scriptApi.scriptJobs(id, signal), SLOW_MS),
  scriptPolicy: () => list(['script-policy'], (signal) => scriptApi.scriptPolicy(signal), SLOW_MS),
}

export function refreshScripts(): void {
  for (const key of ['scripts', 'script', 'script-policy']) void queryClient.invalidateQueries({ queryKey: [key] })
}
