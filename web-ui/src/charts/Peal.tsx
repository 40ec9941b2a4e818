// Strip of a job's last runs. Arrow keys move a cursor, whose run is read out; Enter or a
// click opens it.
import { useNavigate } from '@tanstack/react-router'
import { memo, useMemo, useState, type KeyboardEvent, type MouseEvent } from 'react'
import { useTranslation } from 'react-i18next'
import type { TFunction } from 'i18next'
import type { LastRun } from '../api/types'
import { runTone } from '../ui/StateChip'
import { AbsoluteTime, DurationText } from '../ui/TimeText'
import { humanDuration } from '../lib/duration'
import { formatWithZone } from '../lib/time'
import { lastRunMessage } from '../lib/why'
import { barAt, isFailure, moveCursor, pealBars, pealWidth, type PealSize } from './pealGeometry'
import { AsTable, type ChartTable } from './AsTable'
import './charts.css'
import './plot.css'

const ROW: PealSize = { bar: 5, gap: 2, up: 14, down: 10 }
const PAGE: PealSize = { bar: 9, gap: 3, up: 52, down: 28 }

/** Places of a strip, so that those of a list have one width. */
const ROW_SLOTS = 20
const PAGE_SLOTS = 60

interface Props {
  /** The newest first. */
  runs: LastRun[]
  /** Name of the job. */
  name: string
  /** Zone of the job. */
  zone: string
  /** On a page of its own: larger, with its legend and a table of the same runs. */
  large?: boolean
}

/** "Failed · 2026-11-21 12:00:00 Europe/Berlin · 3.4 s · cannot pay" */
export function readout(run: LastRun, zone: string, t: TFunction): string {
  const parts = [t(`runs.state.${run.state}`), formatWithZone(run.fireAt, zone)]
  if (run.durationMs !== null) parts.push(humanDuration(run.durationMs, t))
  const why = lastRunMessage(run, t)
  if (why) parts.push(why)
  return parts.join(' · ')
}

function summary(runs: LastRun[], name: string, t: TFunction): string {
  const failed = runs.filter((run) => isFailure(run.state)).length
  const newest = runs[0]
  return t('jobs.peal.label', { name, count: runs.length, failed, state: newest ? t(`runs.state.${newest.state}`) : '' })
}

export const Peal = memo(function Peal({ runs, name, zone, large = false }: Props) {
  const { t } = useTranslation()
  if (runs.length === 0) return <span className="muted">{t('jobs.list.noRun')}</span>
  return (
    <div className={large ? 'peal-page' : undefined}>
      <Strip runs={runs} name={name} zone={zone} large={large} />
      {large && <Ends runs={runs} zone={zone} />}
      {large && <Legend runs={runs} />}
      {large && <AsTable name={t('jobs.peal.strip', { count: runs.length })} table={() => runTable(runs, zone, t)} />}
    </div>
  )
})

function Strip({ runs, name, zone, large }: Required<Props>) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const size = large ? PAGE : ROW
  const slots = Math.max(runs.length, large ? PAGE_SLOTS : ROW_SLOTS)
  const width = pealWidth(slots, size)
  const [cursor, setCursor] = useState<string>()
  const bars = useMemo(() => pealBars(runs, size, slots), [runs, size, slots])
  const at = bars.findIndex((bar) => bar.run.id === cursor)
  const run = bars[at]?.run
  const open = (id: string) => void navigate({ to: '/runs/$runId', params: { runId: id } })
  const under = (event: MouseEvent<HTMLButtonElement>) => {
    const box = event.currentTarget.getBoundingClientRect()
    return bars[barAt(((event.clientX - box.left) / box.width) * width, slots, size) - (slots - bars.length)]?.run
  }
  const onKey = (event: KeyboardEvent) => {
    const next = moveCursor(event.key, at < 0 ? bars.length : at, bars.length)
    if (next === undefined) return
    event.preventDefault()
    setCursor(bars[next]?.run.id)
  }
  const onClick = (event: MouseEvent<HTMLButtonElement>) => {
    // A click of the keyboard has no place.
    const chosen = event.detail === 0 ? (run ?? runs[0]) : under(event)
    if (chosen) open(chosen.id)
  }
  return (
    <span className="peal">
      <button
        type="button"
        className="peal-strip"
        aria-label={summary(runs, name, t)}
        onClick={onClick}
        onKeyDown={onKey}
        onMouseMove={(event) => setCursor(under(event)?.id)}
        onMouseLeave={() => setCursor(undefined)}
        onFocus={(event) => event.currentTarget.matches(':focus-visible') && setCursor(runs[0]?.id)}
        onBlur={() => setCursor(undefined)}
      >
        <svg aria-hidden="true" width={width} height={size.up + size.down} viewBox={`0 0 ${width} ${size.up + size.down}`}>
          <line className="peal-base" x1={0} x2={width} y1={size.up} y2={size.up} />
          {bars.map((bar, i) => (
            <path key={bar.run.id} d={bar.path} className={`peal-bar ${bar.shape} st-${runTone(bar.run.state)}${i === at ? ' current' : ''}`} />
          ))}
        </svg>
      </button>
      <span className={`peal-readout${run ? ' shown' : ''}`} aria-live="polite">
        {run ? readout(run, zone, t) : large ? t('jobs.peal.help') : ''}
      </span>
    </span>
  )
}

/** Fire times of the first and the last bar. */
function Ends({ runs, zone }: { runs: LastRun[]; zone: string }) {
  const { t } = useTranslation()
  const newest = runs[0]
  const oldest = runs.at(-1)
  if (!newest || !oldest) return null
  return <p className="peal-ends">{runs.length === 1 ? formatWithZone(newest.fireAt, zone) : t('jobs.peal.ends', { count: runs.length, from: formatWithZone(oldest.fireAt, zone), to: formatWithZone(newest.fireAt, zone) })}</p>
}

const MARK: PealSize = { bar: 9, gap: 0, up: 12, down: 12 }

/** One bar for each outcome that is there. */
function Legend({ runs }: { runs: LastRun[] }) {
  const { t } = useTranslation()
  const states = [...new Set(runs.map((run) => run.state))]
  return (
    <ul className="legend">
      {states.map((state) => {
        const sample = runs.find((run) => run.state === state)
        const bar = sample && pealBars([{ ...sample, durationMs: null }], MARK)[0]
        return (
          bar && (
            <li key={state}>
              <svg aria-hidden="true" width={9} height={14} viewBox={`0 ${bar.below ? 11 : 0} 9 14`}>
                <path d={bar.path} className={`peal-bar ${bar.shape} st-${runTone(state)}`} />
              </svg>
              {t(`runs.state.${state}`)}
            </li>
          )
        )
      })}
      <li>{t('jobs.peal.height')}</li>
    </ul>
  )
}

/** What the table of a strip shows. */
function runTable(runs: LastRun[], zone: string, t: TFunction): ChartTable {
  return {
    head: [t('field.state'), t('runs.list.fireAt'), t('runs.list.lateness'), t('runs.list.duration'), t('runs.list.message')],
    rows: runs.map((run) => [
      t(`runs.state.${run.state}`),
      <AbsoluteTime key="at" at={run.fireAt} zone={zone} />,
      <DurationText key="late" ms={run.latenessMs} />,
      <DurationText key="took" ms={run.durationMs} />,
      lastRunMessage(run, t),
    ]),
  }
}
