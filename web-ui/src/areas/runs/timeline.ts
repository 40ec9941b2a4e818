// From the stamps of a run and its parts to the rows of its picture.
import type { Run, RunDetail, RunState } from '../../api/types'
import type { GanttKind, GanttMark, GanttSegment } from '../../charts/ganttGeometry'

export interface TimelineRow {
  attempt: number
  segments: GanttSegment[]
}

const ms = (at: string | null | undefined): number | undefined => (at ? Date.parse(at) : undefined)

const later = (at: number | undefined, than: number): number | undefined => (at === undefined ? undefined : Math.max(at, than))

type Add = (kind: GanttKind, from: number | undefined, to: number | undefined) => void

/** Adds a segment if both ends are known and in order. */
function adder(state: RunState): { segments: GanttSegment[]; add: Add } {
  const segments: GanttSegment[] = []
  const add: Add = (kind, from, to) => {
    if (from !== undefined && to !== undefined && to >= from) segments.push({ kind, from, to, state })
  }
  return { segments, add }
}

/** The handler's own time, and then the time until its end was known. */
function addRun(add: Add, started: number | undefined, finished: number | undefined, durationMs: number | null | undefined, now: number) {
  const end = started !== undefined && finished !== undefined && typeof durationMs === 'number' ? Math.min(started + durationMs, finished) : finished
  add('run', started, end ?? Math.max(now, started ?? now))
  if (end !== undefined && finished !== undefined && finished > end) add('report', end, finished)
}

/** One row per attempt; an open end reaches to now. Without an attempt, one row waits. */
export function segmentsOf(run: RunDetail, now: number): TimelineRow[] {
  // A row is claimed ahead of time; waiting counts from the fire time.
  let previousEnd = Date.parse(run.fireAt)
  if (run.attempts.length === 0) {
    const { segments, add } = adder(run.state)
    add('wait', previousEnd, ms(run.finishedAt) ?? now)
    return segments.length > 0 ? [{ attempt: 0, segments }] : []
  }
  return run.attempts.map((attempt, i) => {
    const { segments, add } = adder(attempt.state)
    const offered = ms(attempt.offeredAt)
    const started = ms(attempt.startedAt)
    const finished = ms(attempt.finishedAt)
    add(i === 0 ? 'wait' : 'gap', previousEnd, offered)
    // An offer may be made ahead of the fire time; what it waits for counts from there.
    add('offer', later(offered, previousEnd), started ?? finished ?? now)
    // The time of the handler is known for the attempt that ended the run.
    addRun(add, started, finished, i === run.attempts.length - 1 ? run.durationMs : null, now)
    previousEnd = finished ?? previousEnd
    return { attempt: attempt.number, segments }
  })
}

/** The newest attempt of a shard or of a hook, from when the part was made. */
export function segmentsOfPart(part: Run, now: number): GanttSegment[] {
  const { segments, add } = adder(part.state)
  const made = ms(part.claimedAt) ?? Date.parse(part.fireAt)
  const offered = ms(part.offeredAt)
  const started = ms(part.startedAt)
  const finished = ms(part.finishedAt)
  add('wait', made, offered ?? finished ?? now)
  add('offer', later(offered, made), started ?? finished ?? now)
  addRun(add, started, finished, part.durationMs, now)
  return segments
}

/** Begin of the newest attempt's handler; undefined before it. */
export function startOf(run: RunDetail): number | undefined {
  return ms(run.attempts.findLast((one) => one.startedAt)?.startedAt)
}

/** What the row of the newest attempt is marked with. */
export function marksOf(run: RunDetail, limits: { p95?: { ms: number; name: string }; timeout?: { ms: number; name: string } }): GanttMark[] {
  const start = startOf(run)
  const marks: GanttMark[] = (run.steps ?? []).map((step) => ({ at: Date.parse(step.storedAt), name: step.name, kind: 'step' }))
  if (start === undefined) return marks
  if (limits.p95) marks.push({ at: start + limits.p95.ms, name: limits.p95.name, kind: 'p95' })
  if (limits.timeout) marks.push({ at: start + limits.timeout.ms, name: limits.timeout.name, kind: 'timeout' })
  return marks
}
