// The one way out to the server: openapi-fetch over the generated paths, on a
// transport that adds the token, renews it once when the server says 401, and
// tells the connection watcher whether the server answers. Every failure
// becomes an ApiError.
import createClient from 'openapi-fetch'
import { basePath } from '../lib/base'
import { reportAnswer, reportServerDate, reportSilence, watchCall } from '../lib/connection'
import { losesNumbers, parseJson, writeJson } from '../lib/json'
import { ApiError, problemOf } from './problem'
import type { paths } from './schema'
import { ensureSession, getSession, isExpiring, isLeaving, refreshSession, setSession, subscribeSession } from './session'
import { askIfChanged, forgetAnswers, noteCost, wholeAnswer } from './transfer'

/** So long after the time it was asked to wait is an answer to a question waited for. */
const GIVE_UP_MS = 30_000

/** Paths which are called without a token and never renew one. */
const ANONYMOUS = /\/auth\/(login|refresh)$/
const SIGN_OUT = /\/auth\/logout$/

export const http = createClient<paths>({
  // Outside a browser (tests) there is no page to be relative to.
  baseUrl: typeof location === 'undefined' ? 'http://localhost' : location.origin + basePath,
  fetch: (request) => transport(request),
  bodySerializer: (body: unknown) => writeJson(body),
  credentials: 'same-origin',
})

interface Answer<T> {
  data?: T
  error?: unknown
  response: Response
}

/** Bodies with numbers that openapi-fetch, which reads by JSON.parse, would change. */
const exact = new WeakMap<Response, string>()

/** The data of an answer; throws an ApiError for every other outcome. */
export async function take<T>(answer: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await answer
  const body = exact.get(response)
  if (!response.ok) throw problemOf(response, body ? parseJson(body) : error)
  const read = (body ? parseJson(body) : data) as T
  noteCost(read, response)
  return read
}

/** Leaves out what is not set, so that it does not become an empty filter. */
export function present<T extends object>(query: T): T {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '')) as T
}

// Another user or tenant, or nobody: what the one before could see goes.
let reader = ''
subscribeSession(() => {
  const now = whoReads()
  if (now !== reader) forgetAnswers()
  reader = now
})

function whoReads(): string {
  const session = getSession()
  return session ? `${session.user.id}/${session.tenant.id} ` : ''
}

async function transport(request: Request): Promise<Response> {
  const path = new URL(request.url).pathname
  if (ANONYMOUS.test(path)) return once(request)
  // The server would refuse it as soon as the session has ended there.
  if (isLeaving() && !SIGN_OUT.test(path)) throw new ApiError({ status: 401, code: 'unauthenticated' })
  if (isExpiring()) await refreshSession()
  // Nobody is signed in: the refusal is certain, so it is not asked for.
  if (!(await ensureSession())) throw new ApiError({ status: 401, code: 'unauthenticated' })
  const used = getSession()?.accessToken
  // A body can be sent once only; the copy is for the second try.
  const res = await once(withToken(request.clone(), used))
  if (res.status !== 401) return res
  // Another call may have renewed the token while this one was under way.
  const fresh = getSession()?.accessToken
  const next = fresh && fresh !== used ? fresh : (await refreshSession())?.accessToken
  if (!next) return res
  const again = await once(withToken(request, next))
  // A fresh token which is refused as well: the account is gone or disabled.
  if (again.status === 401) setSession(null)
  return again
}

function withToken(request: Request, token: string | undefined): Request {
  if (token) request.headers.set('Authorization', `Bearer ${token}`)
  return request
}

async function once(request: Request): Promise<Response> {
  const waitMs = waitOf(request)
  const heard = watchCall(waitMs)
  // What only reads is given up, so that it can be asked again on a connection
  // that lives. What writes may have been done: nobody gives it up for the person.
  const late = new AbortController()
  const timer = request.method === 'GET' ? setTimeout(() => late.abort(new Error('no answer in time')), waitMs + GIVE_UP_MS) : undefined
  try {
    const who = whoReads()
    const asked = await fetch(askIfChanged(request, who), { signal: AbortSignal.any([request.signal, late.signal]) })
    reportAnswer(serves(request, asked))
    const res = await wholeAnswer(request, who, asked)
    reportServerDate(res.headers.get('Date'))
    await keepExact(res)
    return res
  } catch (err) {
    if (request.signal.aborted) throw err
    reportSilence()
    throw new ApiError({ status: 0, code: 'network', detail: err instanceof Error ? err.message : String(err) })
  } finally {
    heard()
    clearTimeout(timer)
  }
}

/** A refused action says nothing of the next one: whether the server serves is seen by what reads. */
function serves(request: Request, res: Response): boolean {
  return ![502, 503, 504].includes(res.status) || request.method !== 'GET'
}

/** How long the server was asked to wait for something to answer, "20s". */
function waitOf(request: Request): number {
  const seconds = /^(\d+)s$/.exec(new URL(request.url).searchParams.get('wait') ?? '')?.[1]
  return Number(seconds ?? 0) * 1_000
}

async function keepExact(res: Response): Promise<void> {
  if (!/\bjson\b/.test(res.headers.get('Content-Type') ?? '')) return
  const text = await res.clone().text()
  if (losesNumbers(text)) exact.set(res, text)
}
