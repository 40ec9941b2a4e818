// From the stamps of a run to what its timeline draws and lists.
import type { RunDetail, RunState } from '../../api/types'

export type SegmentKind = 'wait' | 'offer' | 'run' | 'gap'

export interface Segment {
  kind: SegmentKind
  /** ms since the epoch */
  from: number
  to: number
  /** State of the attempt, which colours the running part. */
  state: RunState
}

export interface TimelineRow {
  attempt: number
  segments: Segment[]
}

const ms = (at: string | null): number | undefined => (at === null ? undefined : Date.parse(at))

const later = (at: number | undefined, than: number): number | undefined => (at === undefined ? undefined : Math.max(at, than))

/** One row per attempt; an open end reaches to now. */
export function segmentsOf(run: RunDetail, now: number): TimelineRow[] {
  // A row is claimed ahead of time; waiting counts from the fire time.
  let previousEnd = Date.parse(run.fireAt)
  return run.attempts.map((attempt, i) => {
    const segments: Segment[] = []
    const add = (kind: SegmentKind, from: number | undefined, to: number | undefined) => {
      if (from !== undefined && to !== undefined && to >= from) segments.push({ kind, from, to, state: attempt.state })
    }
    const offered = ms(attempt.offeredAt)
    const started = ms(attempt.startedAt)
    const finished = ms(attempt.finishedAt)
    add(i === 0 ? 'wait' : 'gap', previousEnd, offered)
    // An offer may be made ahead of the fire time; what it waits for counts from there.
    add('offer', later(offered, previousEnd), started ?? finished ?? now)
    add('run', started, finished ?? Math.max(now, started ?? now))
    previousEnd = finished ?? previousEnd
    return { attempt: attempt.number, segments }
  })
}
