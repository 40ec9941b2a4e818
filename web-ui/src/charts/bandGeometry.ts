// Where p50 and p95 over time stand, and dots of runs above them.
import type { Spread, Statistics } from '../api/types'
import { durationDomain, logarithmic, type Scale } from './scale'

/** p50 and p95 of a step of time. */
export interface BandStep {
  /** ms since the epoch */
  from: number
  to: number
  spread: Pick<Spread, 'count' | 'p50Ms' | 'p95Ms'>
}

const STEP_MS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 }

/** The steps of statistics in which there is such a measure. */
export function stepsOf(data: Pick<Statistics, 'step' | 'items'>, of: 'lateness' | 'duration'): BandStep[] {
  return data.items.flatMap((one) => {
    const spread = one[of]
    const from = Date.parse(one.at)
    return spread ? [{ from, to: from + STEP_MS[data.step], spread }] : []
  })
}

/** The vertical scale for all that is drawn, from height at the bottom to 0. */
export function bandScale(steps: readonly BandStep[], others: readonly number[], height: number): { y: Scale; low: number; high: number } {
  const values = [...steps.flatMap((one) => [one.spread.p50Ms, one.spread.p95Ms]), ...others].map((ms) => Math.max(1, ms))
  const [low, high] = durationDomain(Math.min(...(values.length > 0 ? values : [1])), Math.max(...(values.length > 0 ? values : [10])))
  return { y: logarithmic(low, high, height, 0), low, high }
}

export interface BandPaths {
  area: string
  p50: string
  p95: string
}

const n1 = (value: number) => Math.round(value * 10) / 10

/** A share is that of a whole step, so lines have steps too. A gap stays a gap. */
export function bandPaths(steps: readonly BandStep[], x: Scale, y: Scale): BandPaths {
  const chains: BandStep[][] = []
  let last: BandStep | undefined
  for (const one of steps.toSorted((a, b) => a.from - b.from)) {
    if (last && last.to === one.from) chains.at(-1)?.push(one)
    else chains.push([one])
    last = one
  }
  const line = (chain: BandStep[], ms: (one: BandStep) => number) => chain.map((one, i) => `${i === 0 ? 'M' : 'L'}${n1(x(one.from))} ${n1(y(ms(one)))}H${n1(x(one.to))}`).join('')
  const back = (chain: BandStep[]) => chain.toReversed().map((one) => `L${n1(x(one.to))} ${n1(y(one.spread.p50Ms))}H${n1(x(one.from))}`).join('')
  const p50 = (one: BandStep) => one.spread.p50Ms
  const p95 = (one: BandStep) => one.spread.p95Ms
  return {
    area: chains.map((chain) => `${line(chain, p95)}${back(chain)}z`).join(''),
    p50: chains.map((chain) => line(chain, p50)).join(''),
    p95: chains.map((chain) => line(chain, p95)).join(''),
  }
}

/** Index of the place that is nearest to x; -1 without any. */
export function nearest(places: readonly number[], x: number): number {
  let best = -1
  for (const [i, place] of places.entries()) {
    const other = places[best]
    if (other === undefined || Math.abs(place - x) < Math.abs(other - x)) best = i
  }
  return best
}

/** Shape of a dot around (0, 0), which tells the outcome beside its colour. */
export type DotShape = 'disc' | 'cross' | 'triangle' | 'ring' | 'square'

export function dotShape(state: string): DotShape {
  switch (state) {
    case 'succeeded':
      return 'disc'
    case 'failed':
      return 'cross'
    case 'timed_out':
      return 'triangle'
    case 'cancelled':
    case 'cancelling':
      return 'square'
    default:
      return 'ring'
  }
}

export const DOT_PATHS: Record<DotShape, string> = {
  disc: 'M-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0z',
  ring: 'M-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z',
  cross: 'M-3 -3L3 3M-3 3L3 -3',
  triangle: 'M0 -3.5L3.5 3H-3.5z',
  square: 'M-2.5 -2.5h5v5h-5z',
}
