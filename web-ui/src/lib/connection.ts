// Does the server answer, and how far is its clock from ours? Both are seen
// by the API client on each answer and shown by the shell.
type Listener = () => void

export interface ConnectionState {
  reachable: boolean
  /** When the last answer came, ms since the epoch; 0 = none yet. */
  lastAnswerAt: number
}

// A Date header has whole seconds and the answer was under way for a while,
// so a smaller difference says nothing.
const NOTICEABLE_SKEW_MS = 2_000

let state: ConnectionState = { reachable: true, lastAnswerAt: 0 }
let skewMs = 0
const listeners = new Set<Listener>()

export function reportReachable(reachable: boolean): void {
  const changed = reachable !== state.reachable
  state = { reachable, lastAnswerAt: reachable ? Date.now() : state.lastAnswerAt }
  if (changed) for (const listener of listeners) listener()
}

export function reportServerDate(header: string | null): void {
  if (!header) return
  const skew = Date.parse(header) + 500 - Date.now()
  if (!Number.isNaN(skew)) skewMs = Math.abs(skew) > NOTICEABLE_SKEW_MS ? skew : 0
}

/** Now by the server's clock, as well as we know it, ms since the epoch. */
export function serverNow(): number {
  return Date.now() + skewMs
}

export function getConnection(): ConnectionState {
  return state
}

export function subscribeConnection(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
