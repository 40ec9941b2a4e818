import { describe, expect, it } from 'vitest'
import type { RunEndings } from '../src/api/types'
import { bandPaths, bandScale, nearest, stepsOf, type BandStep } from '../src/charts/bandGeometry'
import { barsOf, failuresOf, stepAt } from '../src/charts/barGeometry'
import { ganttSpan, placeSegments, ROW_PX, segmentAt, type GanttRow } from '../src/charts/ganttGeometry'
import { countTicks, durationDomain, durationTicks, linear, logarithmic, timeTicks } from '../src/charts/scale'
import { barSpan } from '../src/areas/runs/runBars'

const HOUR = 3_600_000
const at = (text: string) => Date.parse(text)
const ended = (hour: number, counts: Partial<RunEndings>): RunEndings => ({
  at: new Date(hour * HOUR).toISOString(), runs: 0, succeeded: 0, failed: 0, timedOut: 0, lost: 0, cancelled: 0, missed: 0, discarded: 0, excluded: 0, lateness: null, duration: null, ...counts,
})

describe('scales', () => {
  it('map values to pixels', () => {
    expect(linear(0, 10, 100, 200)(5)).toBe(150)
    expect(linear(3, 3, 0, 10)(3)).toBe(0)
    expect(logarithmic(1, 100, 200, 0)(10)).toBeCloseTo(100)
    expect(logarithmic(1, 100, 200, 0)(0)).toBe(200)
  })
  it.each([
    [0, 4, [0]],
    [3, 4, [0, 1, 2, 3]],
    [97, 4, [0, 50]],
    [44, 2, [0, 20, 40]],
    [1, 1, [0, 1]],
    [1000, 4, [0, 500, 1000]],
  ])('counts up to %d have round ticks', (max, n, want) => expect(countTicks(max, n)).toEqual(want))
  it('durations have bounds and ticks that enclose them', () => {
    expect(durationDomain(3, 800)).toEqual([1, 1_000])
    expect(durationDomain(1_000, 1_000)).toEqual([1_000, 10_000])
    expect(durationTicks(1, 60_000, 300)).toEqual([1, 10, 100, 1_000, 10_000, 60_000])
    expect(durationTicks(1, 60_000, 60)).toEqual([1, 1_000])
  })
})

describe('ticks of time', () => {
  const labels = (from: string, to: string, width: number, zone: string, least = 0) => timeTicks(at(from), at(to), width, zone, least).map((tick) => tick.label)
  it('are every three hours of a day, by the zone', () => {
    expect(labels('2026-11-21T10:00:00Z', '2026-11-22T10:00:00Z', 1000, 'UTC', 3 * HOUR)).toEqual(['12:00', '15:00', '18:00', '21:00', '11-22', '03:00', '06:00', '09:00'])
    expect(labels('2026-11-21T10:00:00Z', '2026-11-22T10:00:00Z', 1000, 'Asia/Kolkata', 3 * HOUR)[0]).toBe('18:00')
  })
  it('leave out an hour that the clock jumps over, and repeat none', () => {
    // In New York 02:00 of 8 March 2026 does not exist, and 01:00 of 1 November exists twice.
    const spring = labels('2026-03-08T05:00:00Z', '2026-03-08T10:00:00Z', 2000, 'America/New_York', HOUR)
    expect(spring).toEqual(['03-08', '01:00', '03:00', '04:00', '05:00', '06:00'])
    const autumn = labels('2026-11-01T04:00:00Z', '2026-11-01T09:00:00Z', 2000, 'America/New_York', HOUR)
    expect(autumn.filter((one) => one === '01:00')).toHaveLength(1)
  })
  it('become fewer on a small screen, and dates over weeks', () => {
    expect(labels('2026-11-21T10:00:00Z', '2026-11-22T10:00:00Z', 200, 'UTC', 3 * HOUR).length).toBeLessThan(6)
    expect(labels('2026-11-01T10:00:00Z', '2026-11-08T10:00:00Z', 400, 'UTC')).toEqual(['11-02', '11-03', '11-04', '11-05', '11-06', '11-07', '11-08'])
  })
  it('show milliseconds where the span is short', () => {
    expect(labels('2026-11-21T10:00:00.000Z', '2026-11-21T10:00:00.100Z', 700, 'UTC')[0]).toBe('00:00.000')
  })
})

describe('bars', () => {
  it('hang failures below the baseline', () => {
    const bars = barsOf([ended(1, { succeeded: 90, failed: 10 })], 0, 3 * HOUR, HOUR, 300, 100)
    expect(bars.starts).toEqual([0, HOUR, 2 * HOUR])
    const [good, bad] = bars.parts
    expect([good?.outcome, bad?.outcome]).toEqual(['succeeded', 'failed'])
    expect((good?.y ?? 0) + (good?.height ?? 0)).toBeCloseTo(bars.base)
    expect(bad?.y).toBeCloseTo(bars.base)
    expect(good?.x).toBeGreaterThanOrEqual(100)
  })
  it('keep one scale while failures are many, and give them one of their own while they are few', () => {
    const many = barsOf([ended(0, { succeeded: 50, failed: 50 })], 0, HOUR, HOUR, 100, 100)
    expect(many.perBelow).toBeCloseTo(many.perAbove)
    const few = barsOf([ended(0, { succeeded: 999, failed: 1 })], 0, HOUR, HOUR, 100, 100)
    expect(few.perBelow).toBeGreaterThan(few.perAbove)
    expect(few.parts[1]?.height).toBeGreaterThan(10)
  })
  it('stay inside whatever they count', () => {
    for (const one of [{ failed: 1 }, { succeeded: 1, cancelled: 1, missed: 1, failed: 1, timedOut: 1, lost: 100_000 }, { excluded: 4 }, {}]) {
      for (const part of barsOf([ended(0, one)], 0, HOUR, HOUR, 4, 60).parts) {
        expect(part.y).toBeGreaterThanOrEqual(0)
        expect(part.y + part.height).toBeLessThanOrEqual(60.01)
      }
    }
    expect(failuresOf(ended(0, { failed: 1, timedOut: 2, lost: 3, missed: 9 }))).toBe(6)
  })
  it('find the step at a place', () => expect([stepAt(-1, 100, 4), stepAt(0, 100, 4), stepAt(99, 100, 4), stepAt(100, 100, 4)]).toEqual([-1, 0, 3, -1]))
})

describe('band', () => {
  const spread = (p50Ms: number, p95Ms: number) => ({ count: 9, meanMs: 0, p50Ms, p95Ms, p99Ms: p95Ms, maxMs: p95Ms })
  it('takes the steps that have the measure', () => {
    const data = { step: 'hour' as const, items: [ended(2, { lateness: spread(1, 2) }), ended(1, {})] }
    expect(stepsOf(data, 'lateness')).toEqual([{ from: 2 * HOUR, to: 3 * HOUR, spread: spread(1, 2) }])
  })
  it('has one chain for each gapless time', () => {
    const steps: BandStep[] = [0, 1, 3].map((i) => ({ from: i, to: i + 1, spread: spread(10, 100) }))
    const { y } = bandScale(steps, [], 100)
    const paths = bandPaths(steps, (v) => v * 10, y)
    expect(paths.p95.match(/M/g)).toHaveLength(2)
    expect(paths.area.match(/z/g)).toHaveLength(2)
    expect(paths.p50).not.toContain('NaN')
  })
  it('has a scale without any value', () => expect(bandScale([], [], 100)).toMatchObject({ low: 1, high: 10 }))
  it('finds the nearest place', () => expect([nearest([], 3), nearest([0, 10, 20], 14), nearest([0, 10, 20], 99)]).toEqual([-1, 1, 2]))
})

describe('gantt', () => {
  const rows: GanttRow[] = [
    { key: 'a', name: 'Attempt 1', segments: [{ kind: 'wait', from: 0, to: 10, state: 'failed' }, { kind: 'run', from: 10, to: 20, state: 'failed' }], marks: [{ at: 25, name: 'p95', kind: 'p95' }, { at: 9_999, name: 'timeout', kind: 'timeout' }] },
    { key: 'b', name: 'Attempt 2', segments: [{ kind: 'run', from: 30, to: 30, state: 'succeeded' }] },
  ]
  it('has room for all bars and near marks, not for far ones', () => {
    const [from, to] = ganttSpan(rows)
    expect(from).toBe(0)
    expect(to).toBeGreaterThan(30)
    expect(to).toBeLessThan(100)
  })
  it('shows a moment, one row below the other', () => {
    const placed = placeSegments(rows, (v) => v * 2, 0)
    expect(placed[2]?.width).toBeGreaterThanOrEqual(3)
    expect(placed[2]?.y).toBeGreaterThan(ROW_PX)
    expect(segmentAt(placed, 5, 5, 0)).toBe(0)
    expect(segmentAt(placed, 999, ROW_PX + 5, 0)).toBe(2)
    expect(segmentAt(placed, 5, 999, 0)).toBe(-1)
  })
})

describe('time of the bars above the runs', () => {
  const now = at('2026-11-21T10:30:00Z')
  it.each([
    [{}, '2026-11-20T11:00:00.000Z', '2026-11-21T11:00:00.000Z', 'hour', undefined],
    [{ range: '7d' as const }, '2026-11-14T11:00:00.000Z', '2026-11-21T11:00:00.000Z', 'hour', undefined],
    [{ range: '30d' as const }, '2026-10-23T00:00:00.000Z', '2026-11-22T00:00:00.000Z', 'day', undefined],
    [{ range: '1h' as const }, '2026-11-20T11:00:00.000Z', '2026-11-21T11:00:00.000Z', 'hour', [now - HOUR, now]],
    [{ from: '2026-11-21T05:00:00Z', to: '2026-11-21T06:00:00Z' }, '2026-11-20T11:00:00.000Z', '2026-11-21T11:00:00.000Z', 'hour', [at('2026-11-21T05:00:00Z'), at('2026-11-21T06:00:00Z')]],
    [{ from: '2026-01-05T00:00:00Z', to: '2026-01-06T00:00:00Z' }, '2026-01-04T00:00:00.000Z', '2026-01-07T01:00:00.000Z', 'hour', [at('2026-01-05T00:00:00Z'), at('2026-01-06T00:00:00Z')]],
  ])('%o', (search, from, to, step, selected) => expect(barSpan(search, now)).toEqual({ from, to, step, ...(selected && { selected }) }))
  it('never asks for more steps than the server gives', () => {
    const { from, to, step } = barSpan({ from: '1990-01-01T00:00:00Z' }, now)
    expect(step).toBe('day')
    expect((at(to) - at(from)) / (24 * HOUR)).toBeLessThan(1_100)
  })
})
