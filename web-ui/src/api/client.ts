// The one way out to the server: a small typed fetch. It adds the token,
// renews it once when the server says 401, turns every failure into an
// ApiError and tells the connection watcher whether the server answers.
import { reportReachable, reportServerDate } from '../lib/connection'
import { ApiError, isApiError, problemOf } from './problem'
import { API_BASE, getSession, isExpiring, refreshSession, setSession } from './session'

export type Query = Record<string, string | number | boolean | null | undefined>

export interface CallOptions {
  query?: Query
  body?: unknown
  /** Revision for If-Match. */
  revision?: number
  idempotencyKey?: string
  signal?: AbortSignal
  /** For login and the like: no token, no renewal. */
  anonymous?: boolean
}

export function queryString(query: Query = {}): string {
  const params = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') params.set(key, String(value))
  }
  const text = params.toString()
  return text ? `?${text}` : ''
}

export async function call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
  const res = await send(method, path, options)
  if (!res.ok) throw await problemOf(res)
  if (res.status === 204 || res.headers.get('Content-Length') === '0') return undefined as T
  return (await res.json()) as T
}

/** For downloads: the answer's body as a blob. */
export async function download(path: string): Promise<Blob> {
  const res = await send('GET', path, {})
  if (!res.ok) throw await problemOf(res)
  return res.blob()
}

async function send(method: string, path: string, options: CallOptions): Promise<Response> {
  if (!options.anonymous && isExpiring()) await renew()
  const used = getSession()?.accessToken
  const res = await once(method, path, options, used)
  if (res.status !== 401 || options.anonymous) return res
  // Another call may have renewed the token while this one was under way.
  const fresh = getSession()?.accessToken
  const next = fresh && fresh !== used ? fresh : (await renew())?.accessToken
  if (!next) return res
  const again = await once(method, path, options, next)
  // A fresh token which is refused as well: the account is gone or disabled.
  if (again.status === 401) setSession(null)
  return again
}

async function renew() {
  try {
    return await refreshSession()
  } catch (err) {
    if (isApiError(err, 'network')) reportReachable(false)
    throw err
  }
}

async function once(method: string, path: string, options: CallOptions, token?: string): Promise<Response> {
  const headers: Record<string, string> = { Accept: 'application/json' }
  if (token && !options.anonymous) headers.Authorization = `Bearer ${token}`
  if (options.body !== undefined) headers['Content-Type'] = 'application/json'
  if (options.revision !== undefined) headers['If-Match'] = `"${options.revision}"`
  if (options.idempotencyKey) headers['Idempotency-Key'] = options.idempotencyKey
  try {
    const res = await fetch(API_BASE + path + queryString(options.query), {
      method,
      headers,
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
      signal: options.signal,
      credentials: 'same-origin',
    })
    reportReachable(true)
    reportServerDate(res.headers.get('Date'))
    return res
  } catch (err) {
    if (options.signal?.aborted) throw err
    reportReachable(false)
    throw new ApiError({ status: 0, code: 'network', detail: err instanceof Error ? err.message : String(err) })
  }
}
