// The lines of one run's log as the page holds them: a window, at its end (then
// it grows by long polls) or around a linked line (then it grows on demand, and
// when it reaches the end it stays there). The server filters, so that the
// window of a long log holds what the reader looks for. React reads immutable
// snapshots of it.
import { ApiError } from '../../../api/problem'
import type { LogCounts, LogLevel, LogLine, LogPage } from '../../../api/types'

export interface LogSnapshot {
  lines: LogLine[]
  /** All lines asked for from this number to the last one held are held; 1 = from the start. */
  first: number
  lastLine: number
  /** The first answer came. */
  loaded: boolean
  /** The window reaches to the log's end. */
  atEnd: boolean
  /** No further line will be written. */
  complete: boolean
  truncated: boolean
  /** How many lines there are, and why others are missing; null as long as lines can come. */
  counts: LogCounts | null
  /** The server does not answer; it is asked again. */
  interrupted: boolean
  /** A refusal which ended the loading. */
  error: unknown
}

/** What of a log is asked for: all of it, or lines of a level or with a text. */
export interface LogQuery {
  level?: LogLevel
  q?: string
}

export type Fetch = (query: LogQuery & { after?: number; before?: number; limit: number; wait?: string }, signal: AbortSignal) => Promise<LogPage>

const PAGE = 1_000
const BIG_PAGE = 5_000
/** A longer log opens near its end instead of at its start. */
const OPEN_WHOLE = 5_000
const TAIL = 2_000
/** So many lines of a filtered log are looked for before the reader asks for more. */
const FOUND = 200
/** Lines shown before and after a linked one. */
const CONTEXT = 500
/** Lines held at most; the oldest go first. About 60 MB of plain lines. */
const KEEP = 200_000
const WAIT = '20s'
const BACKOFF_MS = [500, 1_000, 2_000, 5_000]
/** As before: the log's end. */
export const LOG_END = Number.MAX_SAFE_INTEGER

const empty: LogSnapshot = {
  lines: [],
  first: 1,
  lastLine: 0,
  loaded: false,
  atEnd: false,
  complete: false,
  truncated: false,
  counts: null,
  interrupted: false,
  error: undefined,
}

export class LogStore {
  private snapshot: LogSnapshot = empty
  private readonly listeners = new Set<() => void>()
  private readonly fetchPage: Fetch
  private readonly query: LogQuery
  /** The line which a permalink names, if any. */
  private readonly target: number | undefined
  /** Lines with higher numbers were not asked for yet. */
  private after = 0
  /** The window follows the end of the log. */
  private following = true

  constructor(fetchPage: Fetch, query: LogQuery = {}, target?: number) {
    this.fetchPage = fetchPage
    this.query = query
    this.target = target
  }

  readonly get = (): LogSnapshot => this.snapshot

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  private set(change: Partial<LogSnapshot>): void {
    this.snapshot = { ...this.snapshot, ...change }
    for (const listener of this.listeners) listener()
  }

  /**
   * Loads and then follows the log until it has ended and its end is held, or
   * the signal aborts (the page is left, or its tab is hidden). Calling it
   * again continues after the last line held: no gap and no double.
   */
  async run(signal: AbortSignal): Promise<void> {
    let failures = 0
    while (!signal.aborted && !this.done()) {
      try {
        await this.step(signal)
        failures = 0
      } catch (err) {
        if (signal.aborted) return
        if (err instanceof ApiError && err.status >= 400 && err.status < 500 && err.status !== 429) {
          this.set({ error: err, loaded: true, complete: true, atEnd: true })
          return
        }
        this.set({ interrupted: true })
        const wait = BACKOFF_MS[Math.min(failures++, BACKOFF_MS.length - 1)] ?? 5_000
        await pause(wait, signal)
      }
    }
  }

  private done(): boolean {
    const { loaded, complete, atEnd, error } = this.snapshot
    return error !== undefined || (loaded && complete && atEnd && !this.wantsEarlier())
  }

  private step(signal: AbortSignal): Promise<unknown> {
    if (!this.snapshot.loaded) return this.open(signal)
    if (this.wantsEarlier()) return this.loadEarlier(signal)
    return this.following ? this.next(signal) : this.untilFollowing(signal)
  }

  /** A short log is loaded whole; of a filtered one a screenful is looked for. */
  private wantsEarlier(): boolean {
    const { first, lines, lastLine } = this.snapshot
    if (first <= 1 || this.target !== undefined) return false
    return this.filtered() ? lines.length < FOUND : lastLine <= OPEN_WHOLE
  }

  private filtered(): boolean {
    return this.query.level !== undefined || this.query.q !== undefined
  }

  private async open(signal: AbortSignal): Promise<void> {
    const page = await this.ask({ before: this.target ?? LOG_END, limit: this.target === undefined ? TAIL : CONTEXT }, signal)
    // Another run() may have begun meanwhile; its answers count.
    if (signal.aborted || this.snapshot.loaded) return
    this.after = Math.min(page.lastLine, (this.target ?? LOG_END) - 1)
    this.following = this.after >= page.lastLine
    this.set({
      lines: page.lines,
      first: Math.max(page.prev, 1),
      lastLine: page.lastLine,
      loaded: true,
      atEnd: this.following,
      complete: page.complete,
      truncated: page.truncated,
      counts: page.counts,
      interrupted: false,
    })
    if (!this.following) await this.loadLater(signal)
  }

  private ask(query: Parameters<Fetch>[0], signal: AbortSignal): Promise<LogPage> {
    return this.fetchPage({ ...query, ...this.query }, signal)
  }

  private async next(signal: AbortSignal): Promise<void> {
    const { after } = this
    const behind = this.snapshot.lastLine - after
    const page = await this.ask(behind > 0 ? { after, limit: behind > PAGE ? BIG_PAGE : PAGE } : { after, limit: PAGE, wait: WAIT }, signal)
    if (!signal.aborted) this.append(page, after)
  }

  private append(page: LogPage, after: number): void {
    if (after !== this.after) return // somebody else has gone on
    const fresh = page.lines.filter((line) => line.n > after)
    let lines = fresh.length > 0 ? [...this.snapshot.lines, ...fresh] : this.snapshot.lines
    let { first } = this.snapshot
    if (lines.length > KEEP) {
      lines = lines.slice(lines.length - KEEP)
      first = lines[0]?.n ?? first
    }
    this.after = Math.max(after, page.next)
    const lastLine = Math.max(page.lastLine, this.after)
    const atEnd = this.after >= lastLine
    this.following ||= atEnd
    this.set({
      lines,
      first,
      lastLine,
      atEnd,
      loaded: true,
      // A page from the middle does not know.
      complete: page.complete || (this.snapshot.complete && !atEnd),
      truncated: page.truncated,
      counts: page.counts ?? (atEnd ? null : this.snapshot.counts),
      interrupted: false,
    })
  }

  /** Loads lines behind the window; when it reaches the end it follows it. */
  async loadLater(signal: AbortSignal): Promise<void> {
    if (this.following) return
    const { after } = this
    const page = await this.ask({ after, limit: CONTEXT * 2 }, signal)
    if (!signal.aborted) this.append(page, after)
  }

  private untilFollowing(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (!this.following && !signal.aborted) return
        stop()
        signal.removeEventListener('abort', check)
        resolve()
      }
      const stop = this.subscribe(check)
      signal.addEventListener('abort', check)
      check()
    })
  }

  /** Loads lines before the window; resolves to how many came. */
  async loadEarlier(signal: AbortSignal): Promise<number> {
    const { first } = this.snapshot
    if (first <= 1) return 0
    const page = await this.ask({ before: first, limit: this.snapshot.lastLine <= OPEN_WHOLE ? BIG_PAGE : TAIL }, signal)
    if (signal.aborted || first !== this.snapshot.first) return 0
    const older = page.lines.filter((line) => line.n < first)
    this.set({ lines: [...older, ...this.snapshot.lines], first: Math.max(page.prev, 1), interrupted: false })
    return older.length
  }
}

/** The number of the next line that the server finds, from a number on or back. */
export async function findLine(fetchPage: Fetch, from: number, forward: boolean, query: LogQuery, signal: AbortSignal): Promise<number | undefined> {
  for (let cursor = from; ; ) {
    // One after the other: where the next request goes on, the last one says.
    const page = await fetchPage({ ...(forward ? { after: cursor } : { before: cursor }), limit: 1, ...query }, signal)
    const [hit] = page.lines
    if (hit) return hit.n
    if (signal.aborted || (forward ? page.next >= page.lastLine : page.prev <= 1)) return undefined
    cursor = forward ? page.next : page.prev
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
  })
}
