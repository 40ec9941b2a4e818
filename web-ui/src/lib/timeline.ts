// From the stamps of a run to what its timeline draws and lists.
import type { RunDetail, RunState } from '../api/types'

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
    add('offer', offered, started ?? finished ?? now)
    add('run', started, finished ?? Math.max(now, started ?? now))
    previousEnd = finished ?? previousEnd
    return { attempt: attempt.number, segments }
  })
}

export type StampName = 'planned' | 'claimed' | 'offered' | 'granted' | 'started' | 'finished'

export interface Stamp {
  name: StampName
  at: string
  attempt?: number
}

export function stampsOf(run: RunDetail): Stamp[] {
  const stamps: (Stamp | false)[] = [
    { name: 'planned', at: run.fireAt },
    run.claimedAt !== null && { name: 'claimed', at: run.claimedAt },
  ]
  for (const one of run.attempts) {
    const names = ['offered', 'granted', 'started', 'finished'] as const
    for (const name of names) {
      const at = one[`${name}At`]
      if (at) stamps.push({ name, at, attempt: one.number })
    }
  }
  // A run which ended without an attempt: missed, discarded, cancelled.
  if (run.attempts.length === 0 && run.finishedAt !== null) stamps.push({ name: 'finished', at: run.finishedAt })
  return stamps.filter((stamp) => stamp !== false)
}
