// The course of a run on one time axis: its attempts or its parts, the last good run below
// for comparison, and marks for p95 and the timeout.
import './runs.css'
import { useNavigate } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { isFinal, queries } from '../../api/queries'
import { statisticQueries } from '../../api/statistics'
import type { RunDetail } from '../../api/types'
import { useQuery } from '../../api/useQuery'
import { Gantt } from '../../charts/Gantt'
import type { GanttRow } from '../../charts/ganttGeometry'
import { humanDuration, parseDuration } from '../../lib/duration'
import { useNow } from '../../ui/hooks'
import { useZone } from '../../ui/timeStyle'
import { lastGoodQuery } from './lastGood'
import { marksOf, segmentsOf, segmentsOfPart, startOf } from './timeline'

/** As many parts as the list of parts asks for first, so that both share one answer. */
const PARTS_ASKED = 100
const PARTS_SHOWN = 40

export function RunGantt({ run }: { run: RunDetail }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const zone = useZone()
  const clock = useNow()
  const now = isFinal(run.state) ? Date.parse(run.finishedAt ?? run.fireAt) : clock
  const rows = segmentsOf(run, now).map((row): GanttRow => ({ key: `attempt-${row.attempt}`, name: row.attempt === 0 ? t('runs.state.due') : t('runs.detail.attempt', { n: row.attempt }), segments: row.segments }))
  const last = rows.at(-1)
  const limits = useLimits(run)
  if (last) last.marks = marksOf(run, limits)
  const ghost = useGhost(run)
  if (ghost) rows.push(ghost)
  if (rows.length === 0) return <p className="muted">{t('runs.detail.noAttempt')}</p>
  return <Gantt label={t('charts.gantt')} rows={rows} zone={zone} start={Date.parse(run.fireAt)} onOpen={(runId) => void navigate({ to: '/runs/$runId', params: { runId } })} />
}

/** p95 of the job's last 7 days, and the timeout that the run has. */
function useLimits(run: RunDetail): Parameters<typeof marksOf>[1] {
  const { t } = useTranslation()
  const took = useQuery(statisticQueries.week(run.jobId)).data?.total.duration
  const timeout = parseDuration(run.timeout ?? run.jobSpec?.timeout ?? '')
  return {
    ...(took && { p95: { ms: took.p95Ms, name: t('charts.p95', { text: humanDuration(took.p95Ms, t) }) } }),
    ...(timeout > 0 && { timeout: { ms: timeout, name: `${t('charts.timeout')} ${humanDuration(timeout, t)}` } }),
  }
}

/** The last good run, as if its handler had begun when that of this run did. */
function useGhost(run: RunDetail): GanttRow | undefined {
  const { t } = useTranslation()
  const good = useQuery(lastGoodQuery(run)).data
  const start = startOf(run)
  if (!good || good.durationMs === null || start === undefined) return undefined
  return { key: 'ghost', name: t('charts.segment.ghost'), segments: [{ kind: 'ghost', from: start, to: start + good.durationMs, state: 'succeeded' }], runId: good.id }
}

/** The shards of a run and its hooks. */
export function PartsGantt({ run }: { run: RunDetail }) {
  const { t } = useTranslation()
  const zone = useZone()
  const clock = useNow()
  const navigate = useNavigate()
  const now = isFinal(run.state) ? Date.parse(run.finishedAt ?? run.fireAt) : clock
  const parts = useQuery(queries.runParts(run.id, run.state, PARTS_ASKED)).data
  const all = parts?.items ?? []
  const rows = all.slice(0, PARTS_SHOWN).map((part): GanttRow => {
    const name = part.shard ? t('runs.shards.nth', { index: part.shard.index, total: part.shard.total }) : t(part.part === 'before' ? 'runs.shards.before' : 'runs.shards.after')
    return { key: part.id, name, segments: segmentsOfPart(part, now), runId: part.id }
  })
  if (rows.every((row) => row.segments.length === 0)) return null
  const more = Math.max(0, (run.shards ?? 0) - PARTS_SHOWN)
  return (
    <>
      <Gantt label={t('charts.gantt')} rows={rows} zone={zone} start={Date.parse(run.fireAt)} onOpen={(runId) => void navigate({ to: '/runs/$runId', params: { runId } })} />
      {more > 0 && <p className="muted small">{t('charts.moreParts', { count: more })}</p>}
    </>
  )
}
