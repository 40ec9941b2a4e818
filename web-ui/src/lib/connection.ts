// Does the server answer, how far is its clock from ours, and are its pages
// still these? The API client and the loader of chunks report what they see;
// the shell, the lists and the buttons show it.
type Listener = () => void

/**
 * silent: a call failed without an answer, or has been without one for
 * SILENT_MS. unavailable: the server answers that it cannot serve now.
 */
export type Trouble = 'silent' | 'unavailable'

export interface ConnectionState {
  trouble: Trouble | undefined
  /** When the last answer came, ms since the epoch; 0 = none yet. */
  lastAnswerAt: number
  /** The server has pages of another build than the one that is open. */
  outdated: boolean
}

/** A call may be unanswered for so long, beside what it asks the server to wait, before the server counts as silent. */
export const SILENT_MS = 10_000

// A Date header has whole seconds and the answer was under way for a while,
// so a smaller difference says nothing.
const NOTICEABLE_SKEW_MS = 2_000

let state: ConnectionState = { trouble: undefined, lastAnswerAt: 0, outdated: false }
let skewMs = 0
const listeners = new Set<Listener>()

function change(next: Partial<ConnectionState>): void {
  const before = state
  state = { ...state, ...next }
  if (before.trouble !== state.trouble || before.outdated !== state.outdated) for (const listener of listeners) listener()
}

/** The server answered, and serves or does not. */
export function reportAnswer(serves: boolean): void {
  change({ trouble: serves ? undefined : 'unavailable', lastAnswerAt: serves ? Date.now() : state.lastAnswerAt })
}

export function reportSilence(): void {
  change({ trouble: 'silent' })
}

/** The server was asked for its pages, and they are of another build. */
export function reportOutdated(): void {
  change({ outdated: true })
}

/** Watches a call that was sent just now; call the result when it has ended. */
export function watchCall(waitMs: number): () => void {
  const sentAt = Date.now()
  const timer = setTimeout(() => {
    // Another call was answered meanwhile: this one is slow, the server is there.
    if (state.lastAnswerAt <= sentAt) reportSilence()
  }, waitMs + SILENT_MS)
  return () => clearTimeout(timer)
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
