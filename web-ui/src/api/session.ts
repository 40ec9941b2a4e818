// Who is signed in. The access token lives in memory only: a stolen disk or a
// script in another page finds nothing. The refresh cookie is HttpOnly and
// goes to /api/v1/auth of this server alone. Each use replaces it. A second use of an old
// one revokes the whole family. So at most one refresh may be under way: in
// this tab by a shared promise, across tabs by a Web Lock where the browser
// has it (secure contexts).
import { basePath } from '../lib/base'
import { reportSilence, watchCall } from '../lib/connection'
import { problemOf, ApiError } from './problem'
import type { Login } from './types'

export type Session = Login | null
type Listener = () => void

const REFRESH = basePath + '/api/v1/auth/refresh'
const LOCK = 'carillon-refresh'
// Renew this long before the end, so that a call does not pay for a 401 first.
const EARLY_MS = 30_000

let session: Session = null
let known = false
let leaving = false
let inFlight: Promise<Session> | null = null
const listeners = new Set<Listener>()

export function getSession(): Session {
  return session
}

export function setSession(next: Session): void {
  session = next
  known = true
  leaving = false
  for (const listener of listeners) listener()
}

export function subscribeSession(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Until the session changes, nothing but the sign-out itself is sent. */
export function leave(): void {
  leaving = true
}

export function isLeaving(): boolean {
  return leaving
}

/** Forgets everything, also that a refresh was tried. For tests. */
export function resetSession(): void {
  session = null
  known = false
  leaving = false
  inFlight = null
}

/** The session of this tab; the first call tries the refresh cookie. */
export async function ensureSession(): Promise<Session> {
  return known ? session : refreshSession()
}

/** True when the token is so near its end that a call should renew it first. */
export function isExpiring(now = Date.now()): boolean {
  return session !== null && Date.parse(session.expiresAt) - now < EARLY_MS
}

/**
 * Renews the session by the cookie; callers at the same time share one
 * request. Resolves to null when there is no valid cookie; rejects with an
 * ApiError when the server could not be asked (the session is kept then).
 */
export function refreshSession(): Promise<Session> {
  inFlight ??= underLock(requestRefresh).finally(() => {
    inFlight = null
  })
  return inFlight
}

async function requestRefresh(): Promise<Session> {
  let res: Response
  const heard = watchCall(0)
  try {
    res = await fetch(REFRESH, { method: 'POST', credentials: 'same-origin' })
  } catch (err) {
    reportSilence()
    throw new ApiError({ status: 0, code: 'network', detail: String(err) })
  } finally {
    heard()
  }
  if (res.ok) setSession((await res.json()) as Login)
  else if (res.status === 401 || res.status === 403) setSession(null)
  else throw problemOf(res, await res.json().catch(() => undefined))
  return session
}

function underLock<T>(work: () => Promise<T>): Promise<T> {
  const locks = typeof navigator === 'undefined' ? undefined : navigator.locks
  return locks ? (locks.request(LOCK, work) as Promise<T>) : work()
}
