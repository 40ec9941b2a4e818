// How runs have ended: bars by hour, and what they add up to.
import type { TFunction } from 'i18next'
import { useTranslation } from 'react-i18next'
import type { RunEndings, Statistics } from '../api/types'
import { humanDuration } from '../lib/duration'
import { formatInstant } from '../lib/time'
import { Fact } from './Fact'
import { runColour } from './StateChip'

// From the bottom of a bar to its top. What was excluded was not to run.
const PARTS = [
  ['succeeded', 'succeeded'],
  ['cancelled', 'cancelled'],
  ['discarded', 'discarded'],
  ['missed', 'missed'],
  ['lost', 'lost'],
  ['timedOut', 'timed_out'],
  ['failed', 'failed'],
] as const
const HOUR_MS = 3_600_000
const HEIGHT = 60

const height = (one: RunEndings) => PARTS.reduce((sum, [part]) => sum + one[part], 0)

/** One bar for each hour, also for those without an end. */
export function OutcomeBars({ data, label }: { data: Statistics; label: string }) {
  const { t } = useTranslation()
  const first = Date.parse(data.from)
  const hours = Math.round((Date.parse(data.to) - first) / HOUR_MS)
  const most = Math.max(1, ...data.items.map(height))
  const words = (one: RunEndings) =>
    PARTS.filter(([part]) => one[part] > 0)
      .map(([part, state]) => `${one[part].toLocaleString()} ${t(`runs.state.${state}`)}`)
      .join(', ') || '0'
  return (
    <svg role="img" aria-label={`${label}: ${words(data.total)}`} viewBox={`0 0 ${hours * 10} ${HEIGHT}`} preserveAspectRatio="none" style={{ width: '100%', height: HEIGHT, display: 'block' }}>
      {data.items.map((one) => {
        const x = ((Date.parse(one.at) - first) / HOUR_MS) * 10
        let top = HEIGHT
        return (
          <g key={one.at}>
            <title>{`${formatInstant(one.at).slice(0, 16)}: ${words(one)}`}</title>
            <rect x={x} y={0} width={10} height={HEIGHT} fill="transparent" />
            {PARTS.map(([part, state]) => {
              // A single failure among very many runs can be seen.
              const size = one[part] === 0 ? 0 : Math.max(1.5, (one[part] / most) * HEIGHT)
              top = Math.max(0, top - size)
              return size > 0 && <rect key={part} x={x + 1} y={top} width={8} height={size} fill={runColour(state)} />
            })}
          </g>
        )
      })}
    </svg>
  )
}

/** Equal shares lie in one bucket of the statistics: more than "about" is not known. */
const sharesText = ({ p50Ms, p95Ms }: { p50Ms: number; p95Ms: number }, t: TFunction) =>
  p50Ms === p95Ms ? `≈ ${humanDuration(p50Ms, t)}` : `p50 ${humanDuration(p50Ms, t)} · p95 ${humanDuration(p95Ms, t)}`

/** The same in numbers. */
export function OutcomeFacts({ total }: { total: RunEndings }) {
  const { t } = useTranslation()
  const shares = (of: RunEndings['duration']) => (of ? sharesText(of, t) : '—')
  return (
    <dl className="facts">
      {PARTS.map(([part, state]) => total[part] > 0 && <Fact key={part} label={t(`runs.state.${state}`)}>{total[part].toLocaleString()}</Fact>)}
      <Fact label={t('runs.list.duration')}>{shares(total.duration)}</Fact>
      <Fact label={t('runs.list.lateness')}>{shares(total.lateness)}</Fact>
    </dl>
  )
}
