// Where the bars of a run's attempts and parts stand on one time axis.
import type { RunState } from '../api/types'

/** wait and offer come before the handler runs, report is from its end until the end is known, gap lies between two attempts, ghost is an earlier run for comparison. */
export type GanttKind = 'wait' | 'offer' | 'run' | 'report' | 'gap' | 'ghost'

export interface GanttSegment {
  kind: GanttKind
  /** ms since the epoch */
  from: number
  to: number
  state: RunState
}

export interface GanttMark {
  at: number
  name: string
  kind: 'p95' | 'timeout' | 'step'
}

export interface GanttRow {
  key: string
  name: string
  segments: GanttSegment[]
  marks?: GanttMark[]
  /** The run that Enter or a click opens. */
  runId?: string
}

export const ROW_PX = 30
/** The least width of a segment: a moment is visible. */
const LEAST_PX = 3
const HEIGHTS: Record<GanttKind, number> = { run: 16, ghost: 16, wait: 6, offer: 6, report: 6, gap: 6 }

/** The time that all rows need, with the marks near their ends and a little air. */
export function ganttSpan(rows: readonly GanttRow[]): [number, number] {
  const times = rows.flatMap((row) => [...row.segments.flatMap((one) => [one.from, one.to]), ...(row.marks ?? []).filter((mark) => mark.kind === 'step').map((mark) => mark.at)])
  const from = Math.min(...times)
  const end = Math.max(...times, from + 1)
  // A mark far beyond the end, such as a timeout of an hour, would press all bars together.
  const near = rows.flatMap((row) => (row.marks ?? []).map((mark) => mark.at)).filter((at) => at <= from + 2 * (end - from))
  const to = Math.max(end, ...near)
  return [from, to + Math.max(1, (to - from) * 0.02)]
}

export interface PlacedSegment extends GanttSegment {
  row: number
  x: number
  y: number
  width: number
  height: number
}

/** Segments from top to bottom, and in each row by time. */
export function placeSegments(rows: readonly GanttRow[], x: (at: number) => number, top: number): PlacedSegment[] {
  return rows.flatMap((row, i) =>
    row.segments.map((one) => {
      const height = HEIGHTS[one.kind]
      const left = x(one.from)
      return { ...one, row: i, x: left, y: top + i * ROW_PX + (ROW_PX - height) / 2, width: Math.max(LEAST_PX, x(one.to) - left), height }
    }),
  )
}

/** Index of the segment under a place, or else the nearest one of its row; -1 without a row. */
export function segmentAt(placed: readonly PlacedSegment[], x: number, y: number, top: number): number {
  const row = Math.floor((y - top) / ROW_PX)
  let best = -1
  let distance = Infinity
  for (const [i, one] of placed.entries()) {
    if (one.row !== row) continue
    const away = x < one.x ? one.x - x : Math.max(0, x - one.x - one.width)
    if (away < distance) [best, distance] = [i, away]
  }
  return best
}
