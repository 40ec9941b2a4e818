// Where the bars of a strip of runs stand. Pure, so that it is tested without a browser.
import type { LastRun, RunState } from '../api/types'

/** Shape of a bar. It tells the outcome beside its colour. */
export type PealShape = 'plain' | 'notched' | 'capped' | 'split' | 'slanted' | 'dashed' | 'hollow'

export interface PealBar {
  run: LastRun
  shape: PealShape
  /** Below the baseline. */
  below: boolean
  x: number
  y: number
  width: number
  height: number
  path: string
}

export interface PealSize {
  /** Width of a bar and the space beside it. */
  bar: number
  gap: number
  /** Space above and below the baseline. */
  up: number
  down: number
}

/** Least height of a bar, so that the fastest run is visible. */
const LEAST = 3
const FAILURES: ReadonlySet<RunState> = new Set(['failed', 'timed_out', 'lost'])
const SHAPES: Partial<Record<RunState, PealShape>> = {
  succeeded: 'plain',
  running: 'plain',
  failed: 'notched',
  timed_out: 'capped',
  lost: 'split',
  cancelled: 'slanted',
  cancelling: 'slanted',
  missed: 'dashed',
  discarded: 'dashed',
  excluded: 'dashed',
}

export const isFailure = (state: RunState): boolean => FAILURES.has(state)

/** The value that a share q of sorted values does not exceed. */
function quantile(sorted: number[], q: number): number {
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? 0
}

/** Durations that differ by less than this factor do not fill the height. */
const LEAST_RANGE = 2

/** From 0 to 1: the logarithm of a duration between p5 and p95 of all that are shown. Runs without a duration have half the height. */
export function durationScale(runs: readonly LastRun[]): (ms: number | null) => number {
  const known = runs.flatMap((run) => (run.durationMs === null ? [] : [Math.max(1, run.durationMs)])).toSorted((a, b) => a - b)
  const low = Math.log(quantile(known, 0.05))
  const high = Math.log(quantile(known, 0.95))
  const range = Math.max(high - low, Math.log(LEAST_RANGE))
  return (ms) => {
    if (ms === null || known.length === 0) return 0.5
    return Math.min(1, Math.max(0, 0.5 + (Math.log(Math.max(1, ms)) - (low + high) / 2) / range))
  }
}

/** Bars from the oldest on the left to the newest at the right end of slots places; runs come newest first. */
export function pealBars(runs: readonly LastRun[], size: PealSize, slots = runs.length): PealBar[] {
  const scale = durationScale(runs)
  const free = Math.max(0, slots - runs.length)
  return runs.toReversed().map((run, i) => {
    const below = isFailure(run.state)
    const room = below ? size.down : size.up
    const shape = SHAPES[run.state] ?? 'hollow'
    const share = shape === 'dashed' || shape === 'hollow' ? 0.5 : scale(run.durationMs)
    const height = Math.round((LEAST + share * (room - LEAST)) * 10) / 10
    const box = { x: (free + i) * (size.bar + size.gap), y: below ? size.up : size.up - height, width: size.bar, height }
    return { run, shape, below, ...box, path: pathOf(shape, box) }
  })
}

/** Width of a strip of n bars. */
export const pealWidth = (n: number, size: PealSize): number => Math.max(0, n * (size.bar + size.gap) - size.gap)

/** Index of the bar at x; -1 outside. */
export function barAt(x: number, n: number, size: PealSize): number {
  const i = Math.floor(x / (size.bar + size.gap))
  return i >= 0 && i < n ? i : -1
}

/** Index after a key; undefined for other keys. */
export function moveCursor(key: string, at: number, n: number): number | undefined {
  switch (key) {
    case 'ArrowLeft':
      return Math.max(0, at - 1)
    case 'ArrowRight':
      return Math.min(n - 1, at + 1)
    case 'Home':
      return 0
    case 'End':
      return n - 1
    default:
      return undefined
  }
}

interface Box {
  x: number
  y: number
  width: number
  height: number
}

const rect = (x: number, y: number, w: number, h: number) => `M${x} ${y}h${w}v${h}h${-w}z`

function pathOf(shape: PealShape, { x, y, width, height }: Box): string {
  const bottom = y + height
  switch (shape) {
    case 'notched': // a V cut into the free end
      return `M${x} ${y}h${width}v${height}l${-width / 2} ${-Math.min(3, height)}l${-width / 2} ${Math.min(3, height)}z`
    case 'capped': // the free end is cut off
      return rect(x, y, width, Math.max(1, height - 3)) + rect(x, bottom - 1, width, 1)
    case 'split':
      return rect(x, y, width, Math.max(1, height / 2 - 1)) + rect(x, y + height / 2 + 0.5, width, Math.max(0.5, height / 2 - 0.5))
    case 'slanted':
      return `M${x} ${bottom}v${-height}l${width} ${Math.min(3, height)}v${Math.max(0, height - 3)}z`
    case 'dashed':
    case 'hollow': // the line lies inside of the bar
      return rect(x + 0.5, y + 0.5, width - 1, height - 1)
    default:
      return rect(x, y, width, height)
  }
}
