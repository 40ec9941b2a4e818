// The attempts of a run on one time axis. The drawing is for the eye; the steps
// of the explanation below it say the same in words.
import './runs.css'
import { useTranslation } from 'react-i18next'
import type { RunDetail } from '../../api/types'
import { humanDuration } from '../../lib/duration'
import { formatClock, localZone } from '../../lib/time'
import { segmentsOf, type Segment, type SegmentKind } from './timeline'
import { useNow } from '../../ui/hooks'
import { runColour } from '../../ui/StateChip'

const WAIT = 'var(--queued)'
const OFFER = 'var(--skipped)'

function colourOf(segment: Segment): string {
  if (segment.kind === 'run') return runColour(segment.state)
  if (segment.kind === 'gap') return runColour('retry_wait')
  return segment.kind === 'offer' ? OFFER : WAIT
}

export function RunTimeline({ run }: { run: RunDetail }) {
  const { t } = useTranslation()
  const now = useNow()
  const rows = segmentsOf(run, now)
  const start = Math.min(...rows.flatMap((row) => row.segments.map((s) => s.from)))
  const end = Math.max(...rows.flatMap((row) => row.segments.map((s) => s.to)), start + 1)
  const span = end - start
  if (run.attempts.length === 0) {
    return <p className="muted">{t('runs.detail.noAttempt')}</p>
  }
  return (
    <div className="timeline">
      <p className="muted small">{t('runs.detail.timelineHelp', { zone: localZone })}</p>
      <div aria-hidden="true" className="timeline">
        {rows.map((row) => (
          <div key={row.attempt} className="tl-row">
            <span className="small">{t('runs.detail.attempt', { n: row.attempt })}</span>
            <div className="tl-track">
              <svg viewBox="0 0 1000 22" preserveAspectRatio="none">
                {row.segments.map((segment) => (
                  <rect
                    key={`${segment.kind}-${segment.from}`}
                    x={((segment.from - start) / span) * 1000}
                    // A moment still deserves to be seen.
                    width={Math.max(((segment.to - segment.from) / span) * 1000, 3)}
                    y={segment.kind === 'run' ? 2 : 8}
                    height={segment.kind === 'run' ? 18 : 6}
                    fill={colourOf(segment)}
                  />
                ))}
              </svg>
            </div>
          </div>
        ))}
        <div className="tl-row">
          <span />
          <div className="tl-axis num">
            <span>{formatClock(start)}</span>
            <span>{humanDuration(span, t)}</span>
            <span>{formatClock(end)}</span>
          </div>
        </div>
        <Legend rows={rows.flatMap((row) => row.segments)} />
      </div>
    </div>
  )
}

const LEGEND: Record<SegmentKind, 'segWait' | 'segOffer' | 'segRun' | 'segGap'> = {
  wait: 'segWait',
  offer: 'segOffer',
  run: 'segRun',
  gap: 'segGap',
}

function Legend({ rows }: { rows: Segment[] }) {
  const { t } = useTranslation()
  const kinds = (Object.keys(LEGEND) as SegmentKind[]).filter((kind) => rows.some((one) => one.kind === kind))
  return (
    <div className="tl-legend">
      {kinds.map((kind) => {
        const segment = rows.findLast((one) => one.kind === kind)
        return (
          <span key={kind}>
            <span className="tl-swatch" style={{ background: segment && colourOf(segment) }} />
            {t(`runs.detail.${LEGEND[kind]}`)}
          </span>
        )
      })}
    </div>
  )
}
