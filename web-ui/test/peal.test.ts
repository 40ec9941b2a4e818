import { describe, expect, it } from 'vitest'
import type { LastRun, RunState } from '../src/api/types'
import { barAt, durationScale, moveCursor, pealBars, pealWidth, type PealSize } from '../src/charts/pealGeometry'
import { verdictOf } from '../src/areas/jobs/jobVerdict'

const SIZE: PealSize = { bar: 5, gap: 2, up: 14, down: 10 }
let id = 0
const run = (state: RunState, durationMs: number | null = null): LastRun => ({ id: String(++id), state, fireAt: '2026-11-21T12:00:00Z', finishedAt: null, latenessMs: null, durationMs })

describe('heights', () => {
  it('are logarithms of durations between p5 and p95', () => {
    const runs = Array.from({ length: 21 }, (_, i) => run('succeeded', 10 ** (i / 5)))
    const scale = durationScale(runs)
    expect(scale(10 ** (1 / 5))).toBeCloseTo(0)
    expect(scale(1)).toBe(0)
    expect(scale(10 ** (19 / 5))).toBeCloseTo(1)
    expect(scale(1e9)).toBe(1)
    expect(scale(10 ** (10 / 5))).toBeCloseTo(0.5)
  })
  it('differ little where durations do', () => {
    const scale = durationScale([run('succeeded', 1_000), run('succeeded', 1_010)])
    expect(scale(1_010) - scale(1_000)).toBeLessThan(0.02)
  })
  it('are half where nothing can be compared', () => {
    expect(durationScale([run('succeeded', 40), run('failed', 40)])(40)).toBe(0.5)
    expect(durationScale([])(null)).toBe(0.5)
    expect(durationScale([run('succeeded', 1), run('succeeded', 1_000)])(null)).toBe(0.5)
  })
  it('are never nothing, and stay in their room', () => {
    const bars = pealBars([run('succeeded', 0), run('succeeded', 50), run('failed', 1e7), run('lost', 3)], SIZE)
    for (const bar of bars) {
      expect(bar.height).toBeGreaterThanOrEqual(3)
      expect(bar.y).toBeGreaterThanOrEqual(0)
      expect(bar.y + bar.height).toBeLessThanOrEqual(SIZE.up + SIZE.down)
    }
  })
})

describe('places and shapes', () => {
  it('has the newest on the right', () => {
    const [newest, oldest] = [run('succeeded', 1), run('succeeded', 1)]
    const bars = pealBars([newest, oldest], SIZE)
    expect(bars.map((bar) => [bar.run.id, bar.x])).toEqual([[oldest.id, 0], [newest.id, 7]])
    expect(pealBars([newest, oldest], SIZE, 5).map((bar) => bar.x)).toEqual([21, 28])
    expect(pealWidth(2, SIZE)).toBe(12)
    expect(pealWidth(0, SIZE)).toBe(0)
  })
  it.each([
    ['succeeded', 'plain', false],
    ['running', 'plain', false],
    ['failed', 'notched', true],
    ['timed_out', 'capped', true],
    ['lost', 'split', true],
    ['cancelled', 'slanted', false],
    ['missed', 'dashed', false],
    ['discarded', 'dashed', false],
    ['excluded', 'dashed', false],
    ['due', 'hollow', false],
    ['offered', 'hollow', false],
    ['retry_wait', 'hollow', false],
  ] as const)('%s is %s', (state, shape, below) => {
    const bar = pealBars([run(state, 5)], SIZE)[0]
    expect([bar?.shape, bar?.below]).toEqual([shape, below])
    expect(bar?.y).toBe(below ? SIZE.up : SIZE.up - (bar?.height ?? 0))
    expect(bar?.path).toMatch(/^M[\d.]+ [\d.]+/)
    expect(bar?.path).not.toMatch(/NaN|h-?0v|--/)
  })
  it('finds the bar at a place', () => {
    expect([barAt(0, 3, SIZE), barAt(6.9, 3, SIZE), barAt(7, 3, SIZE), barAt(21, 3, SIZE), barAt(-1, 3, SIZE)]).toEqual([0, 0, 1, -1, -1])
  })
  it('moves by keys', () => {
    expect([moveCursor('ArrowLeft', 3, 3), moveCursor('ArrowRight', 2, 3), moveCursor('ArrowLeft', 0, 3), moveCursor('Home', 2, 3), moveCursor('End', 0, 3), moveCursor('a', 0, 3)]).toEqual([2, 2, 0, 0, 2, undefined])
  })
})

describe('verdict', () => {
  it('counts failures since the last success', () => {
    const runs = [run('running'), run('failed'), run('missed'), run('timed_out'), run('succeeded'), run('failed')]
    expect(verdictOf(runs)).toEqual({ kind: 'failing', newest: runs[1], failed: 2, since: runs[3], lastSuccess: runs[4] })
  })
  it('knows no beginning if all failed', () => {
    const runs = [run('lost'), run('failed')]
    expect(verdictOf(runs)).toEqual({ kind: 'failing', newest: runs[0], failed: 2 })
  })
  it('is well after a success, and silent without an end', () => {
    const good = run('succeeded')
    expect(verdictOf([run('cancelled'), good, run('failed')])).toEqual({ kind: 'well', newest: good, failed: 0, lastSuccess: good })
    expect(verdictOf([run('due'), run('excluded')])).toEqual({ kind: 'none', failed: 0 })
    expect(verdictOf([])).toEqual({ kind: 'none', failed: 0 })
  })
})
