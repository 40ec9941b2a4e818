// The pictures of a job's page: durations of 7 days as dots with a band, outcomes by hour,
// and the runs of the time that was selected in them.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { Button } from 'antd'
import { useTranslation } from 'react-i18next'
import { list, queries } from '../../api/queries'
import { api } from '../../api/endpoints'
import { statisticQueries } from '../../api/statistics'
import type { Job } from '../../api/types'
import { useQuery } from '../../api/useQuery'
import { Band, type Dot } from '../../charts/Band'
import { stepsOf } from '../../charts/bandGeometry'
import { FailureShare, HourBars } from '../../charts/HourBars'
import { serverNow } from '../../lib/connection'
import { humanDuration, parseDuration } from '../../lib/duration'
import { newestFirst } from '../../lib/search'
import { formatInstant, localZone } from '../../lib/time'
import { ResourceTable } from '../../ui/ResourceTable'
import { Blank } from '../../ui/States'
import { useRunColumns } from '../runs/RunTable'

const HOUR_MS = 3_600_000
const WEEK_MS = 7 * 24 * HOUR_MS
const RECENT_RUNS = 5
const SELECTED_RUNS = 20
/** What one answer of the list of runs has at most. */
const DOTS = 200
const DOTS_POLL_MS = 30_000
/** Runs of an hour below which p95 is little more than the longest one. */
const FEW = 8

const zoneOf = (job: Job) => job.schedule.zone || localZone

/** The time that is selected in the pictures, from the address. */
function useSelection() {
  const search = useSearch({ from: '/app/jobs/$jobId/' })
  const navigate = useNavigate()
  const select = (job: Job, from?: string, to?: string) => void navigate({ to: '/jobs/$jobId', params: { jobId: job.id }, search: from && to ? { from, to } : {}, resetScroll: false })
  const selected: [number, number] | undefined = search.from && search.to ? [Date.parse(search.from), Date.parse(search.to)] : undefined
  return { search, selected, select }
}

export function JobDurations({ job }: { job: Job }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const { selected, select } = useSelection()
  // The begin of an hour, so that the question stays the same for an hour.
  const to = (Math.floor(serverNow() / HOUR_MS) + 1) * HOUR_MS
  const from = to - WEEK_MS
  const since = new Date(from).toISOString()
  const hours = useQuery(statisticQueries.week(job.id)).data
  const few = hours ? (hours.total.duration?.count ?? 0) < FEW * Math.max(1, stepsOf(hours, 'duration').length) : false
  const days = useQuery({ ...statisticQueries.week(job.id, 'day'), enabled: few }).data
  const runs = useQuery(list(['job', job.id, 'dots', since], (signal) => api.runs({ jobId: job.id, from: since, limit: DOTS }, signal), DOTS_POLL_MS)).data
  if (!hours || !runs || (few && !days)) return null
  const dots = runs.items.flatMap((run): Dot[] => (run.durationMs === null ? [] : [{ id: run.id, at: Date.parse(run.fireAt), ms: run.durationMs, state: run.state }]))
  const steps = stepsOf((few && days) || hours, 'duration').map((one) => ({ ...one, from: Math.max(from, one.from), to: Math.min(to, one.to) }))
  if (dots.length + steps.length === 0) return null
  const timeout = parseDuration(job.timeout)
  return (
    <section className="card">
      <h2>{t('charts.durations')}</h2>
      <p className="muted small">
        {t('charts.durationsHelp')} {runs.nextCursor && t('charts.newestDots', { count: dots.length })}
      </p>
      <Band
        label={t('charts.durations')}
        steps={steps}
        dots={dots}
        from={from}
        to={to}
        zone={zoneOf(job)}
        height={200}
        {...(timeout > 0 && { bound: { ms: timeout, name: t('charts.timeout') } })}
        selected={selected}
        onOpen={(dot) => dot && void navigate({ to: '/runs/$runId', params: { runId: dot.id } })}
        onSelect={(begin, end) => select(job, begin, end)}
      />
    </section>
  )
}

/** How its runs of a week have ended, also those that are deleted since. */
export function JobWeek({ job }: { job: Job }) {
  const { t } = useTranslation()
  const { selected, select } = useSelection()
  const navigate = useNavigate()
  const { data } = useQuery(statisticQueries.week(job.id))
  if (!data || data.items.length === 0) return null
  return (
    <section className="card">
      <div className="card-head">
        <h2>{t('timers.stats.spans.week')}</h2>
        <FailureShare total={data.total} />
      </div>
      <p className="muted small">
        {data.total.lateness && `${t('runs.list.lateness')}: ${data.total.lateness.p50Ms === data.total.lateness.p95Ms ? '≈' : 'p95'} ${humanDuration(data.total.lateness.p95Ms, t)}`}
      </p>
      <HourBars
        data={data}
        label={t('charts.endedWeek')}
        zone={zoneOf(job)}
        height={200}
        selected={selected}
        onOpen={(from, to) => void navigate({ to: '/jobs/$jobId/runs', params: { jobId: job.id }, search: { from, to } })}
        onSelect={(from, to) => select(job, from, to)}
      />
    </section>
  )
}

/** The newest runs, or those of the selected time. */
export function JobRecent({ job }: { job: Job }) {
  const { t } = useTranslation()
  const { search, selected, select } = useSelection()
  const { from, to } = search
  const runs = useQuery(queries.runs({ jobId: job.id, ...(selected ? { from, to, limit: SELECTED_RUNS } : { limit: RECENT_RUNS }) }))
  const columns = useRunColumns(false)
  const stamp = (at: number) => formatInstant(at, zoneOf(job)).slice(0, 16)
  const title = selected ? t('jobs.detail.runsFrom', { from: stamp(selected[0]), to: stamp(selected[1]), zone: zoneOf(job) }) : t('jobs.detail.recent')
  return (
    <section className="card flush" aria-label={title}>
      <div className="card-head">
        <h2>{title}</h2>
        <span className="row">
          {selected && (
            <Button size="small" onClick={() => select(job)}>
              {t('charts.clearSpan')}
            </Button>
          )}
          <Link to="/jobs/$jobId/runs" params={{ jobId: job.id }} search={selected ? { from, to } : {}}>
            {t('jobs.detail.allRuns')}
          </Link>
        </span>
      </div>
      <ResourceTable
        label={title}
        dense
        opens
        columns={columns}
        rows={runs.data && newestFirst(runs.data.items)}
        rowKey={(run) => run.id}
        error={runs.error}
        onRetry={() => void runs.refetch()}
        empty={<Blank title={t('jobs.detail.noRuns')} help={t('jobs.detail.noRunsHelp')} />}
      />
    </section>
  )
}
