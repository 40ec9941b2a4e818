// The requests of the audit log, in a chunk of their own.
import { http, present, take } from './client'
import type { Get } from './endpoints'
import { list, SLOW_MS } from './queries'

const changes = (query: Get<'/api/v1/audit'>, signal?: AbortSignal) => take(http.GET('/api/v1/audit', { params: { query: present(query) }, signal }))

export const changesOf = (kind: string, object: string, cursor?: string) =>
  list(['changes', kind, object, cursor], (signal) => changes({ kind, object, cursor, limit: 20 }, signal), SLOW_MS)
