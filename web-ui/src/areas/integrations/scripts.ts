// What only some pages ask of scripts: not part of what every page loads.
import { queryOptions } from '@tanstack/react-query'
import { http, present, take } from '../../api/client'
import { at, type Get } from '../../api/endpoints'
import { list, queryClient, SLOW_MS } from '../../api/queries'
import type * as T from '../../api/types'

export const scriptApi = {
  scripts: (query: Get<'/api/v1/scripts'>, signal?: AbortSignal) => take(http.GET('/api/v1/scripts', { params: { query: present(query) }, signal })),
  script: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/scripts/{id}', { params: at(id), signal })),
  scriptVersions: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/scripts/{id}/versions', { params: { ...at(id), query: { limit: 50 } }, signal })),
  scriptDiff: (id: T.Id, from: number, to: number, signal?: AbortSignal) => take(http.GET('/api/v1/scripts/{id}/diff', { params: { ...at(id), query: { from, to } }, signal })),
  scriptJobs: (id: T.Id, signal?: AbortSignal) => take(http.GET('/api/v1/scripts/{id}/jobs', { params: at(id), signal })),
  createScript: (body: T.ScriptWrite) => take(http.POST('/api/v1/scripts', { body })),
  updateScript: (id: T.Id, version: number, body: T.ScriptWrite) => take(http.PUT('/api/v1/scripts/{id}', { params: { ...at(id), header: { 'If-Match': `"${version}"` } }, body })),
  deleteScript: (id: T.Id) => take(http.DELETE('/api/v1/scripts/{id}', { params: at(id) })),
  scriptPolicy: (signal?: AbortSignal) => take(http.GET('/api/v1/script-policy', { signal })),
  scriptPolicies: (signal?: AbortSignal) => take(http.GET('/api/v1/script-policy/history', { params: { query: { limit: 50 } }, signal })),
  /** Without callbacks these stay as they are. */
  setScriptPolicy: (body: { languages: T.ScriptLanguage[]; http: boolean; note: string; callbacks?: T.CallbackPolicyWrite }) => take(http.PUT('/api/v1/script-policy', { body })),
  callbackSecret: () => take(http.GET('/api/v1/callback-secret')),
}

/** A page ends at 1 MiB of contents, so a few pages may be needed. */
async function allScripts(signal?: AbortSignal): Promise<T.Script[]> {
  const items: T.Script[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await scriptApi.scripts({ cursor, limit: 200 }, signal)
    items.push(...page.items)
    if (!page.nextCursor || items.length >= 1000) return items
    cursor = page.nextCursor
  }
}

export const scriptQueries = {
  allScripts: () => list(['scripts', 'all'], allScripts, SLOW_MS),
  scripts: (cursor?: string, limit?: number) => list(['scripts', cursor, limit], (signal) => scriptApi.scripts({ cursor, limit }, signal), SLOW_MS),
  script: (id: T.Id) => list(['script', id], (signal) => scriptApi.script(id, signal), SLOW_MS),
  scriptVersions: (id: T.Id, version: number) => list(['script', id, 'versions', version], (signal) => scriptApi.scriptVersions(id, signal), SLOW_MS),
  /** Versions never change. */
  scriptDiff: (id: T.Id, from: number, to: number) =>
    queryOptions({ queryKey: ['script', id, 'diff', from, to], queryFn: ({ signal }) => scriptApi.scriptDiff(id, from, to, signal), staleTime: Infinity }),
  scriptJobs: (id: T.Id) => list(['script', id, 'jobs'], (signal) => scriptApi.scriptJobs(id, signal), SLOW_MS),
  scriptPolicy: () => list(['script-policy'], (signal) => scriptApi.scriptPolicy(signal), SLOW_MS),
}

export function refreshScripts(): void {
  for (const key of ['scripts', 'script', 'script-policy']) void queryClient.invalidateQueries({ queryKey: [key] })
}
