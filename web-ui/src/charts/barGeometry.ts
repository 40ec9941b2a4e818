// Where the bars of runs by hour stand: failures hang below the baseline.
import type { RunEndings } from '../api/types'

export type Outcome = 'succeeded' | 'cancelled' | 'unstarted' | 'failed' | 'timedOut' | 'lost'

/** From the baseline outwards. Runs that a calendar excluded were not to run, and do not count. */
export const ABOVE: readonly Outcome[] = ['succeeded', 'cancelled', 'unstarted']
export const BELOW: readonly Outcome[] = ['failed', 'timedOut', 'lost']

type Counts = Omit<RunEndings, 'lateness' | 'duration' | 'at'>

export function countOf(one: Counts, outcome: Outcome): number {
  return outcome === 'unstarted' ? one.missed + one.discarded : one[outcome]
}

const sum = (one: Counts, of: readonly Outcome[]) => of.reduce((n, outcome) => n + countOf(one, outcome), 0)

/** Runs that failed, timed out or were lost. */
export const failuresOf = (one: Counts): number => sum(one, BELOW)

export interface BarPart {
  outcome: Outcome
  x: number
  y: number
  width: number
  height: number
}

export interface Bars {
  /** Begin of each step, also of those without an end. */
  starts: number[]
  parts: BarPart[]
  /** y of the baseline. */
  base: number
  /** The most runs of a step above and below the baseline. */
  mostAbove: number
  mostBelow: number
  /** Pixels of a run above and below. They differ if failures would be too low to be seen. */
  perAbove: number
  perBelow: number
}

/** Failures have at least this share of the height, if there are any. */
const LEAST_BELOW = 0.18
/** The least height of a part, so that one failure among very many runs is visible. */
const LEAST_PX = 2.5

/** Bars of a time span; the items lie in it, in any order. */
export function barsOf(items: readonly RunEndings[], from: number, to: number, step: number, width: number, height: number): Bars {
  const starts: number[] = []
  for (let at = from; at < to; at += step) starts.push(at)
  const mostAbove = Math.max(0, ...items.map((one) => sum(one, ABOVE)))
  const mostBelow = Math.max(0, ...items.map((one) => sum(one, BELOW)))
  const common = mostAbove + mostBelow === 0 ? 0 : height / (mostAbove + mostBelow)
  const below = mostBelow === 0 ? 0 : Math.max(mostBelow * common, height * LEAST_BELOW)
  const base = height - below
  const perAbove = mostAbove === 0 ? 0 : base / mostAbove
  const perBelow = mostBelow === 0 ? 0 : below / mostBelow
  const slot = width / Math.max(1, starts.length)
  const gap = Math.min(2, slot * 0.2)
  const parts = items.flatMap((one) => {
    const i = Math.floor((Date.parse(one.at) - from) / step)
    if (i < 0 || i >= starts.length) return []
    const x = i * slot + gap / 2
    return [...stack(one, ABOVE, x, slot - gap, base, -1, perAbove), ...stack(one, BELOW, x, slot - gap, base, 1, perBelow)].map((part) => fit(part, height))
  })
  return { starts, parts, base, mostAbove, mostBelow, perAbove, perBelow }
}

function stack(one: RunEndings, of: readonly Outcome[], x: number, width: number, base: number, way: 1 | -1, per: number): BarPart[] {
  let edge = base
  return of.flatMap((outcome) => {
    const n = countOf(one, outcome)
    if (n === 0) return []
    const height = Math.max(LEAST_PX, n * per)
    const y = way === 1 ? edge : edge - height
    edge += way * height
    return [{ outcome, x, y, width, height }]
  })
}

/** Least heights may add up to more than the room. */
function fit(part: BarPart, height: number): BarPart {
  const y = Math.min(Math.max(0, part.y), height - 1)
  return { ...part, y, height: Math.max(1, Math.min(part.height, height - y)) }
}

/** Index of the step at x; -1 outside. */
export function stepAt(x: number, width: number, n: number): number {
  const i = Math.floor((x / width) * n)
  return i >= 0 && i < n ? i : -1
}
