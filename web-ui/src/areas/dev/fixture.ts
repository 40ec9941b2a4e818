// Fixed data for the gallery: the same picture whenever it is drawn.
import type { LastRun, RunEndings, RunState, Statistics } from '../../api/types'
import type { Dot } from '../../charts/Band'
import type { BandStep } from '../../charts/bandGeometry'
import type { GanttRow } from '../../charts/ganttGeometry'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
export const BEGIN = Date.parse('2026-11-21T10:00:00Z')
export const END = BEGIN + DAY_MS
const iso = (ms: number) => new Date(ms).toISOString()
/** A wave between 0 and 1, another one for each seed. */
const wave = (i: number, seed: number) => (Math.sin(i * 0.7 + seed) + 1) / 2

const NONE = { runs: 0, succeeded: 0, failed: 0, timedOut: 0, lost: 0, cancelled: 0, missed: 0, discarded: 0, excluded: 0, lateness: null, duration: null }

function statistics(of: (hour: number) => Partial<RunEndings>): Pick<Statistics, 'from' | 'to' | 'step' | 'items' | 'total'> {
  const items = Array.from({ length: 24 }, (_, i): RunEndings => ({ ...NONE, ...of(i), at: iso(BEGIN + i * HOUR_MS) }))
  const total = { ...NONE, at: iso(BEGIN) }
  for (const one of items) for (const key of ['succeeded', 'failed', 'timedOut', 'lost', 'cancelled', 'missed', 'discarded'] as const) total[key] += one[key]
  return { from: iso(BEGIN), to: iso(END), step: 'hour', items: items.filter((one) => one.succeeded + one.failed > 0), total }
}

/** One failure in a hundred, one quiet hour, and one hour with all outcomes. */
export const mostlyGood = statistics((i) => {
  if (i === 7) return {}
  if (i === 15) return { succeeded: 700, failed: 9, timedOut: 6, lost: 4, cancelled: 60, missed: 40, discarded: 20 }
  return { succeeded: Math.round(600 + 400 * wave(i, 1)), failed: i % 5 === 0 ? 1 + (i % 3) : 0 }
})
export const halfBad = statistics((i) => ({ succeeded: Math.round(20 * wave(i, 2)), failed: Math.round(18 * wave(i, 4)), timedOut: i % 4, lost: i % 6 === 0 ? 2 : 0 }))
export const allBad = statistics((i) => ({ failed: 1 + (i % 4) }))

const spread = (p50Ms: number, p95Ms: number, count = 60) => ({ count, p50Ms, p95Ms })
export const lateness: BandStep[] = Array.from({ length: 24 }, (_, i): BandStep => ({ from: BEGIN + i * HOUR_MS, to: BEGIN + (i + 1) * HOUR_MS, spread: spread(4 + i / 4, i === 14 ? 2_600 : 12 + 30 * wave(i, 3)) })).filter((_, i) => i !== 7)
export const oneBucket: BandStep[] = Array.from({ length: 7 }, (_, i) => ({ from: BEGIN + i * DAY_MS, to: BEGIN + (i + 1) * DAY_MS, spread: spread(1_200, 1_200, 1) }))

const STATES: readonly RunState[] = ['succeeded', 'succeeded', 'succeeded', 'failed', 'succeeded', 'timed_out', 'succeeded', 'cancelled', 'succeeded', 'lost']
export const dots: Dot[] = Array.from({ length: 84 }, (_, i) => ({ id: String(i), at: BEGIN + i * 2 * HOUR_MS, ms: Math.round(900 * (1 + 3 * wave(i, 5)) * (i % 17 === 0 ? 9 : 1)), state: STATES[i % STATES.length] ?? 'succeeded' }))
export const durations: BandStep[] = Array.from({ length: 7 }, (_, i) => ({ from: BEGIN + i * DAY_MS, to: BEGIN + (i + 1) * DAY_MS, spread: spread(1_500 + 300 * wave(i, 1), 4_200 + 4_000 * wave(i, 2), 12) }))
export const WEEK_END = BEGIN + 7 * DAY_MS

export const PEAL_STATES: readonly RunState[] = ['due', 'offered', 'running', 'cancelling', 'retry_wait', 'succeeded', 'failed', 'timed_out', 'cancelled', 'lost', 'missed', 'discarded', 'excluded']
export const strip: LastRun[] = Array.from({ length: 40 }, (_, i): LastRun => {
  const state = i < PEAL_STATES.length ? (PEAL_STATES[i] ?? 'succeeded') : i % 9 === 0 ? 'failed' : 'succeeded'
  return { id: String(1000 - i), state, fireAt: iso(END - i * HOUR_MS), finishedAt: null, latenessMs: 4, durationMs: state === 'missed' ? null : Math.round(400 + 3_000 * wave(i, 1)), ...(state === 'failed' && { message: 'connection refused' }) }
})

const part = (from: number, to: number) => ({ from: BEGIN + from, to: BEGIN + to })
export const course: GanttRow[] = [
  { key: '1', name: '#1', segments: [{ kind: 'wait', ...part(0, 40), state: 'lost' }, { kind: 'offer', ...part(40, 65), state: 'lost' }, { kind: 'run', ...part(65, 2_400), state: 'lost' }] },
  { key: '2', name: '#2', segments: [{ kind: 'gap', ...part(2_400, 4_400), state: 'failed' }, { kind: 'offer', ...part(4_400, 4_430), state: 'failed' }, { kind: 'run', ...part(4_430, 6_900), state: 'failed' }] },
  {
    key: '3',
    name: '#3',
    segments: [{ kind: 'gap', ...part(6_900, 8_900), state: 'succeeded' }, { kind: 'run', ...part(8_930, 12_700), state: 'succeeded' }],
    marks: [
      { at: BEGIN + 10_000, name: 'step', kind: 'step' },
      { at: BEGIN + 11_800, name: 'p95', kind: 'p95' },
      { at: BEGIN + 13_900, name: 'timeout 5 s', kind: 'timeout' },
    ],
  },
  { key: 'ghost', name: '…', segments: [{ kind: 'ghost', ...part(8_930, 11_200), state: 'succeeded' }], runId: '7' },
]
export const shards: GanttRow[] = Array.from({ length: 6 }, (_, i): GanttRow => ({
  key: `shard-${i}`,
  name: `${i + 1}/6`,
  runId: String(i),
  segments: [{ kind: 'wait', ...part(0, 100 * i), state: 'running' }, { kind: 'run', ...part(100 * i, 2_000 + 400 * i), state: i === 2 ? 'failed' : i === 5 ? 'running' : 'succeeded' }],
}))
