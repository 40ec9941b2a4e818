// What polling costs on the wire. An answer that came before is kept with its
// ETag: the server sends 304 instead of the same again. And what is large is
// asked for less often, so that no list of a busy tenant takes more than its
// share.

/** Transferred bytes that one polled query may take. */
const BYTES_PER_MINUTE = 60_000
/** The slowest pace: even a list whose every answer is new is this fresh. */
const SLOWEST_MS = 30_000
/** After so many answers without news the pace halves, and once more after twice as many. */
const STEADY = 6

/** Answers kept: of the pages that a person goes back and forth between. */
const MAX_KEPT = 40
/** Longer answers than this are not kept, in characters. */
const MAX_LENGTH = 1 << 20

interface Kept {
  etag: string
  text: string
}

const kept = new Map<string, Kept>()

/** Adds the ETag of the answer that is here. `who` keeps sessions apart. */
export function askIfChanged(request: Request, who: string): Request {
  const have = request.method === 'GET' ? kept.get(who + request.url) : undefined
  if (have) request.headers.set('If-None-Match', have.etag)
  return request
}

/** The whole answer: the one that is here if the server says that it has not changed. */
export async function wholeAnswer(request: Request, who: string, res: Response): Promise<Response> {
  const key = who + request.url
  const have = kept.get(key)
  if (res.status === 304 && have) {
    keep(key, have) // used last
    const headers = new Headers(res.headers)
    headers.set('Content-Type', 'application/json')
    headers.set(UNCHANGED, 'true')
    return new Response(have.text, { status: 200, headers })
  }
  const etag = res.headers.get('ETag')
  if (request.method === 'GET' && res.status === 200 && etag?.startsWith('W/')) {
    const text = await res.clone().text()
    if (text.length <= MAX_LENGTH) keep(key, { etag, text })
  }
  return res
}

function keep(key: string, one: Kept): void {
  kept.delete(key)
  kept.set(key, one)
  if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value as string)
}

/** After the session has changed: nothing of it stays in memory. */
export function forgetAnswers(): void {
  kept.clear()
}

const UNCHANGED = 'X-Carillon-Unchanged'

interface Cost {
  /** Of the last answer that had something new. */
  bytes: number
  /** Answers without news since then. */
  same: number
}

const costs = new WeakMap<object, { bytes: number; unchanged: boolean }>()
const paces = new Map<string, Cost>()
const MAX_PACES = 200

/** Notes what an answer has cost, at its data. */
export function noteCost(data: unknown, res: Response): void {
  if (typeof data !== 'object' || data === null) return
  costs.set(data, { bytes: Number(res.headers.get('Content-Length') ?? 0), unchanged: res.headers.has(UNCHANGED) })
}

/** Notes that the query of this key has got data. */
export function notePoll(key: string, data: unknown): void {
  const cost = typeof data === 'object' && data !== null ? costs.get(data) : undefined
  if (!cost) return
  const before = paces.get(key)
  paces.delete(key)
  paces.set(key, cost.unchanged && before ? { bytes: before.bytes, same: before.same + 1 } : { bytes: cost.bytes, same: 0 })
  if (paces.size > MAX_PACES) paces.delete(paces.keys().next().value as string)
}

/** The time until a query is asked again, for one that wants everyMs. */
export function paceOf(key: string, everyMs: number): number {
  const { bytes, same } = paces.get(key) ?? { bytes: 0, same: 0 }
  const steady = everyMs * (same >= 2 * STEADY ? 3 : same >= STEADY ? 2 : 1)
  // What comes back unchanged costs nothing: only news are rationed.
  const rationed = same > 0 ? 0 : (bytes / BYTES_PER_MINUTE) * 60_000
  return Math.max(everyMs, Math.min(Math.max(steady, rationed), SLOWEST_MS))
}
