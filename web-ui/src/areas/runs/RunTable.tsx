// The list of runs, on its own page and on the page of a job.
import { useQuery } from '../../api/useQuery'
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { queries } from '../../api/queries'
import type { Run } from '../../api/types'
import { isFiltered, newestFirst, runsQuery, type RunsSearch } from '../../lib/search'
import { said } from '../../lib/said'
import { whyLine } from '../../lib/why'
import { useNow } from '../../ui/hooks'
import { Pager, ResourceTable, type Column } from '../../ui/ResourceTable'
import { RunStateChip } from '../../ui/StateChip'
import { Blank } from '../../ui/States'
import { DurationText, RelativeTime } from '../../ui/TimeText'

export interface Controlled {
  search: RunsSearch
  onChange: (search: RunsSearch) => void
  /** On a job's own page the job is fixed. */
  jobId?: string
}

export function RunTable({ search, onChange, jobId }: Controlled) {
  const { t } = useTranslation()
  const now = useNow()
  const query = runsQuery(search, now)
  const runs = useQuery(queries.runs({ ...query, ...(jobId ? { jobId } : {}) }))
  const columns = useRunColumns(!jobId)
  const items = runs.data?.items
  const rows = useMemo(() => items && newestFirst(items), [items])
  return (
    <div className="card flush">
      <ResourceTable
        label={t('runs.list.title')}
        dense
        opens
        columns={columns}
        rows={rows}
        rowKey={(run) => run.id}
        error={runs.error}
        onRetry={() => void runs.refetch()}
        updatedAt={runs.dataUpdatedAt}
        filtered={isFiltered(search)}
        onClearFilters={() => onChange({})}
        empty={
          <Blank
            title={jobId ? t('jobs.detail.noRuns') : t('runs.list.emptyTitle')}
            help={jobId ? t('jobs.detail.noRunsHelp') : t('runs.list.emptyHelp')}
          />
        }
        pager={<Pager cursor={search.cursor} nextCursor={runs.data?.nextCursor} onGo={(cursor) => onChange({ ...search, cursor })} note={(jobId ?? search.jobId) ? undefined : t('runs.list.pageOrder')} />}
      />
    </div>
  )
}

export function useRunColumns(withJob: boolean): Column<Run>[] {
  const { t } = useTranslation()
  return useMemo(() => {
    const columns: (Column<Run> | false)[] = [
      {
        key: 'state',
        title: t('field.state'),
        kind: 'title',
        render: (run) => (
          <Link to="/runs/$runId" params={{ runId: run.id }} title={run.lingers ? t('runs.lingers') : undefined}>
            <RunStateChip state={run.state} fireAt={run.fireAt} lingers={run.lingers} />
            <span className="sr-only">{t('runs.detail.title', { id: run.id })}</span>
          </Link>
        ),
      },
      withJob && {
        key: 'job',
        title: t('runs.list.job'),
        render: (run) => (
          <Link to="/jobs/$jobId" params={{ jobId: run.jobId }} className="clip" title={run.jobName}>
            {run.jobName}
          </Link>
        ),
      },
      { key: 'fire', title: t('runs.list.fireAt'), sorted: 'descending', render: (run) => <RelativeTime at={run.fireAt} /> },
      { key: 'cause', title: t('runs.list.cause'), render: (run) => t(`runs.cause.${run.cause}`) },
      { key: 'late', title: t('runs.list.lateness'), align: 'right', render: (run) => <DurationText ms={run.latenessMs} /> },
      { key: 'took', title: t('runs.list.duration'), align: 'right', render: (run) => <RunDuration run={run} /> },
      {
        key: 'attempt',
        title: t('runs.list.attempt'),
        render: (run) => (
          <span className="num nowrap">
            {run.attempt === 0 ? '—' : `${run.attempt}/${run.maxAttempts}`}
          </span>
        ),
      },
      { key: 'instance', title: t('runs.list.instance'), render: (run) => (run.instance ? <span className="mono clip" title={run.instance.name}>{run.instance.name}</span> : <span className="muted">—</span>) },
      {
        key: 'why',
        title: t('runs.list.message'),
        render: (run) => {
          const why = whyLine(run, t)
          return why ? (
            <span className="clip" title={said(run.error || run.message, t) || why}>
              {why}
            </span>
          ) : null
        },
      },
    ]
    return columns.filter((column) => column !== false)
  }, [t, withJob])
}

/** The duration so far while it runs. */
export function RunDuration({ run }: { run: Run }) {
  if (run.durationMs !== null) return <DurationText ms={run.durationMs} />
  if (!run.startedAt || run.finishedAt) return <DurationText ms={null} />
  return <Ticking since={run.startedAt} />
}

function Ticking({ since }: { since: string }) {
  const now = useNow()
  return <DurationText ms={Math.max(0, Math.floor((now - Date.parse(since)) / 1_000) * 1_000)} />
}
