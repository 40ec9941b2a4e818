// The attempts of a run on one time axis: planned, claimed, offered, granted,
// started, finished. The drawing is for the eye; the table below it says the
// same in words.
import { useTranslation } from 'react-i18next'
import type { RunDetail } from '../api/types'
import { humanDuration } from '../lib/duration'
import { formatClock, localZone } from '../lib/time'
import { segmentsOf, stampsOf, type Segment, type SegmentKind } from '../lib/timeline'
import { useNow } from './hooks'
import { runColour } from './StateChip'

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
    return (
      <>
        <p className="muted">{t('runs.detail.noAttempt')}</p>
        <StampTable run={run} />
      </>
    )
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
      <StampTable run={run} />
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

function StampTable({ run }: { run: RunDetail }) {
  const { t } = useTranslation()
  const planned = Date.parse(run.fireAt)
  const stamps = stampsOf(run)
  return (
    <div className="table-wrap">
      <table className="table keep" role="table" aria-label={t('runs.detail.timeline')}>
        <thead role="rowgroup">
          <tr role="row">
            {(['stamp', 'at', 'after'] as const).map((key) => (
              <th key={key} role="columnheader" scope="col">
                {t(`runs.detail.${key}`)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {stamps.map((stamp) => (
            <tr key={`${stamp.attempt ?? 0}-${stamp.name}`} role="row">
              <td role="cell" className="card-title">
                {t(`runs.detail.${stamp.name}`)}
                {stamp.attempt !== undefined && run.attempts.length > 1 && <span className="muted"> · {t('runs.detail.attempt', { n: stamp.attempt })}</span>}
              </td>
              <td role="cell" className="mono" data-label={t('runs.detail.at')}>
                <time dateTime={stamp.at}>{formatClock(stamp.at)}</time>
              </td>
              <td role="cell" className="num" data-label={t('runs.detail.after')}>
                {stamp.name === 'planned' ? '—' : <Offset ms={Date.parse(stamp.at) - planned} />}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Offset({ ms }: { ms: number }) {
  const { t } = useTranslation()
  // Rows are claimed ahead of their fire time: that is planned, not late.
  return ms < 0 ? (
    <span className="muted">
      {humanDuration(-ms, t)} {t('runs.detail.early')}
    </span>
  ) : (
    <>+ {humanDuration(ms, t)}</>
  )
}

