// The lines of one run's log as the page holds them: a window that starts at
// the first line, or, for a long log, near its end or near the linked line;
// grown at the end by long polls and at the front on demand. React reads
// immutable snapshots of it.
import { ApiError } from '../api/problem'
import type { LogLine, LogPage } from '../api/types'

export interface LogSnapshot {
  lines: LogLine[]
  /** Number of the first line held; lines before it can be loaded. */
  first: number
  lastLine: number
  /** The first answer came. */
  loaded: boolean
  complete: boolean
  truncated: boolean
  /** The server does not answer; it is asked again. */
  interrupted: boolean
  /** A refusal which ended the loading. */
  error: unknown
}

export type Fetch = (query: { after: number; limit: number; wait?: string }, signal: AbortSignal) => Promise<LogPage>

const PAGE = 1_000
const BIG_PAGE = 5_000
/** A longer log opens near its end instead of at its start. */
const OPEN_WHOLE = 5_000
const TAIL = 2_000
/** Lines shown before a linked one. */
const CONTEXT = 500
/** Lines held at most; the oldest go first. About 60 MB of plain lines. */
const KEEP = 200_000
const WAIT = '20s'
const BACKOFF_MS = [500, 1_000, 2_000, 5_000]

const empty: LogSnapshot = {
  lines: [],
  first: 1,
  lastLine: 0,
  loaded: false,
  complete: false,
  truncated: false,
  interrupted: false,
  error: undefined,
}

export class LogStore {
  private snapshot: LogSnapshot = empty
  private readonly listeners = new Set<() => void>()

  private readonly fetchPage: Fetch
  /** The line which a permalink names, if any. */
  private readonly target: number | undefined

  constructor(fetchPage: Fetch, target?: number) {
    this.fetchPage = fetchPage
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
   * Loads and then follows the log until it is complete or the signal aborts
   * (the page is left, or its tab is hidden). Calling it again continues after
   * the last line held: no gap and no double.
   */
  async run(signal: AbortSignal): Promise<void> {
    let failures = 0
    while (!signal.aborted && !this.snapshot.complete) {
      // With a linked line the window grows to its limit and stays with it;
      // dropping the oldest lines would take away what the link shows.
      if (this.target !== undefined && this.snapshot.lines.length >= KEEP) return
      try {
        await (this.snapshot.loaded ? this.next(signal) : this.open(signal))
        failures = 0
      } catch (err) {
        if (signal.aborted) return
        if (err instanceof ApiError && err.status >= 400 && err.status < 500 && err.status !== 429) {
          this.set({ error: err, loaded: true, complete: true })
          return
        }
        this.set({ interrupted: true })
        const wait = BACKOFF_MS[Math.min(failures++, BACKOFF_MS.length - 1)] ?? 5_000
        await pause(wait, signal)
      }
    }
  }

  private async open(signal: AbortSignal): Promise<void> {
    const page = await this.fetchPage({ after: 0, limit: PAGE }, signal)
    // Another run() may have begun meanwhile; its answers count.
    if (signal.aborted) return
    if (page.lastLine <= OPEN_WHOLE) return this.append(page, 0)
    const tail = page.lastLine - TAIL
    const after = this.target === undefined ? tail : Math.max(0, Math.min(this.target - CONTEXT, tail))
    this.set({ first: after + 1, lastLine: page.lastLine, loaded: true, truncated: page.truncated })
  }

  private async next(signal: AbortSignal): Promise<void> {
    const after = this.end()
    const behind = this.snapshot.lastLine - after
    const page = await this.fetchPage(
      behind > 0 ? { after, limit: behind > PAGE ? BIG_PAGE : PAGE } : { after, limit: PAGE, wait: WAIT },
      signal,
    )
    if (signal.aborted) return
    this.append(page, after)
  }

  /** The number of the last line held, or of the one before the window. */
  private end(): number {
    return this.snapshot.lines.at(-1)?.n ?? this.snapshot.first - 1
  }

  private append(page: LogPage, after: number): void {
    const fresh = page.lines.filter((line) => line.n > after)
    let lines = fresh.length > 0 ? [...this.snapshot.lines, ...fresh] : this.snapshot.lines
    if (lines.length > KEEP) lines = lines.slice(lines.length - KEEP)
    const end = lines.at(-1)?.n ?? after
    this.set({
      lines,
      first: lines[0]?.n ?? this.snapshot.first,
      lastLine: Math.max(page.lastLine, end),
      loaded: true,
      // Complete says that nothing more will be written, not that we have all.
      complete: page.complete && end >= page.lastLine,
      truncated: page.truncated,
      interrupted: false,
    })
  }

  /** Loads lines before the window; resolves to how many came. */
  async loadEarlier(signal: AbortSignal): Promise<number> {
    const { first } = this.snapshot
    if (first <= 1) return 0
    const after = Math.max(0, first - 1 - TAIL)
    const page = await this.fetchPage({ after, limit: first - 1 - after }, signal)
    const older = page.lines.filter((line) => line.n < this.snapshot.first)
    this.set({ lines: [...older, ...this.snapshot.lines], first: after + 1 })
    return older.length
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
