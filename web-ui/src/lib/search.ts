// Filters in the URL. Plain `key=value` pairs, lists joined by commas, so that
// a link can be read, typed and shared; unknown or malformed values are
// dropped instead of breaking the page.
import type { Cause, RunState } from '../api/types'

export const RUN_STATES: readonly RunState[] = [
  'due',
  'offered',
  'running',
  'cancelling',
  'retry_wait',
  'succeeded',
  'failed',
  'timed_out',
  'cancelled',
  'lost',
  'missed',
  'discarded',
  'excluded',
]
export const FINAL_STATES: readonly RunState[] = [
  'succeeded',
  'failed',
  'timed_out',
  'cancelled',
  'lost',
  'missed',
  'discarded',
  'excluded',
]
export const CAUSES: readonly Cause[] = ['schedule', 'manual', 'api', 'misfire', 'retry', 'parent', 'backfill', 'timer', 'import']
export const RANGES = ['1h', '24h', '7d', '30d'] as const
export type Range = (typeof RANGES)[number]

export type RawSearch = Record<string, string>

export function parseSearch(text: string): RawSearch {
  return Object.fromEntries(new URLSearchParams(text.startsWith('?') ? text.slice(1) : text))
}

export function stringifySearch(search: object): string {
  const params = new URLSearchParams()
  for (const [key, value] of Object.entries(search)) {
    if (value !== undefined && value !== null && value !== '') params.set(key, String(value))
  }
  // Commas and colons are legal in a query and much easier to read.
  const query = params.toString().replaceAll('%2C', ',').replaceAll('%3A', ':')
  return query ? `?${query}` : ''
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}

function id(value: unknown): string | undefined {
  return typeof value === 'string' && /^\d{1,20}$/.test(value) ? value : undefined
}

function oneOf<T extends string>(value: unknown, allowed: readonly T[]): T | undefined {
  return allowed.find((one) => one === value)
}

/** Keeps the known members of a comma list, each once, in canonical order. */
export function listOf<T extends string>(value: unknown, allowed: readonly T[]): string | undefined {
  if (typeof value !== 'string') return undefined
  const wanted = new Set(value.split(','))
  return allowed.filter((one) => wanted.has(one)).join(',') || undefined
}

export function splitList<T extends string>(value: string | undefined): T[] {
  return value ? (value.split(',') as T[]) : []
}

function instant(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  const ms = Date.parse(value)
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString()
}

/** What the list of jobs can be limited to. */
export const JOB_STATES = ['enabled', 'failing', 'late', 'paused', 'never_fires'] as const
/** Orders of the list of jobs. The last three go by the last 7 days, the highest first. */
export const JOB_SORTS = ['name', 'nextFireAt', 'updatedAt', 'failures', 'lateness', 'p95'] as const
export const JOB_GROUPS = ['executor', 'owner', 'label'] as const

export interface JobsSearch {
  q?: string
  executorId?: string
  handler?: string
  state?: (typeof JOB_STATES)[number]
  /** Absent: jobs of people and code. */
  kind?: 'call' | 'callback' | 'timer' | 'all'
  label?: string
  owner?: string
  /** Present: the jobs that code proposes. */
  proposed?: '1'
  /** Present: the jobs that were deleted. */
  deleted?: '1'
  sort?: (typeof JOB_SORTS)[number]
  group?: (typeof JOB_GROUPS)[number]
  cursor?: string
}

export function jobsSearch(raw: Record<string, unknown>): JobsSearch {
  return clean({
    q: text(raw.q),
    executorId: id(raw.executorId),
    handler: text(raw.handler),
    state: oneOf(raw.state, JOB_STATES),
    kind: oneOf(raw.kind, ['call', 'callback', 'timer', 'all']),
    label: text(raw.label),
    owner: text(raw.owner),
    proposed: raw.proposed === '1' || raw.proposed === 1 ? '1' : undefined,
    deleted: raw.deleted === '1' || raw.deleted === 1 ? '1' : undefined,
    sort: oneOf(raw.sort, JOB_SORTS),
    group: oneOf(raw.group, JOB_GROUPS),
    cursor: text(raw.cursor),
  })
}

/** The moment that the drawer of a job explains: an instant, or the last fire. */
export interface WhySearch {
  why?: string
}

export function whySearch(raw: Record<string, unknown>): WhySearch {
  const why = text(raw.why)
  return why === 'last' || (why && !Number.isNaN(Date.parse(why))) ? { why } : {}
}

export const TIMER_STATES = ['pending', 'claimed', 'ended'] as const

export interface TimersSearch {
  executor?: string
  handler?: string
  /** Absent: pending. */
  state?: (typeof TIMER_STATES)[number]
  keyPrefix?: string
  label?: string
  cursor?: string
}

export function timersSearch(raw: Record<string, unknown>): TimersSearch {
  return clean({
    executor: text(raw.executor),
    handler: text(raw.handler),
    state: oneOf(raw.state, ['claimed', 'ended']),
    keyPrefix: text(raw.keyPrefix),
    label: text(raw.label),
    cursor: text(raw.cursor),
  })
}

export const INCIDENT_LISTS = ['open', 'acknowledged', 'resolved', 'all'] as const

export interface IncidentsSearch {
  /** Absent: what is not over. */
  state?: (typeof INCIDENT_LISTS)[number]
  executorId?: string
  cursor?: string
}

export function incidentsSearch(raw: Record<string, unknown>): IncidentsSearch {
  return clean({ state: oneOf(raw.state, INCIDENT_LISTS), executorId: id(raw.executorId), cursor: text(raw.cursor) })
}

export const DELIVERY_STATES = ['pending', 'delivered', 'failed'] as const

export interface DeliveriesSearch {
  state?: (typeof DELIVERY_STATES)[number]
  cursor?: string
}

export function deliveriesSearch(raw: Record<string, unknown>): DeliveriesSearch {
  return clean({ state: oneOf(raw.state, DELIVERY_STATES), cursor: text(raw.cursor) })
}

export interface RunsSearch {
  jobId?: string
  q?: string
  executorId?: string
  instanceId?: string
  state?: string
  cause?: Cause
  /** Of an error, as 16 hex digits. */
  fingerprint?: string
  range?: Range
  from?: string
  to?: string
  cursor?: string
}

export function runsSearch(raw: Record<string, unknown>): RunsSearch {
  const range = oneOf(raw.range, RANGES)
  return clean({
    jobId: id(raw.jobId),
    q: text(raw.q),
    executorId: id(raw.executorId),
    instanceId: id(raw.instanceId),
    state: listOf(raw.state, RUN_STATES),
    cause: oneOf(raw.cause, CAUSES),
    fingerprint: typeof raw.fingerprint === 'string' && /^[0-9a-f]{16}$/.test(raw.fingerprint) ? raw.fingerprint : undefined,
    range,
    // A relative range wins: both at once would contradict each other.
    from: range ? undefined : instant(raw.from),
    to: range ? undefined : instant(raw.to),
    cursor: text(raw.cursor),
  })
}

const RANGE_MS: Record<Range, number> = { '1h': 3_600_000, '24h': 86_400_000, '7d': 7 * 86_400_000, '30d': 30 * 86_400_000 }
// The start of a relative range moves by steps, so that polling asks the same
// question for a while and the cache can answer the next visitor.
const STEP_MS = 10_000

/** The API's query for the filters; relative ranges become an instant. */
export function runsQuery(search: RunsSearch, now: number): Record<string, string | undefined> {
  const { range, ...rest } = search
  if (!range) return rest
  const from = Math.floor((now - RANGE_MS[range]) / STEP_MS) * STEP_MS
  return { ...rest, from: new Date(from).toISOString() }
}

/**
 * The runs of a page by fire time. Pages follow each other by when their runs
 * were written, which is what the server has an index for; a run planned for
 * later or a backfill's stands elsewhere in that order.
 */
export function newestFirst<T extends { fireAt: string }>(page: T[]): T[] {
  return page.toSorted((a, b) => Date.parse(b.fireAt) - Date.parse(a.fireAt))
}

/** True when anything beyond the page position narrows the list. */
export function isFiltered(search: object): boolean {
  return Object.entries(search).some(([key, value]) => key !== 'cursor' && key !== 'sort' && key !== 'group' && value !== undefined)
}

function clean<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as T
}
