import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { Button, Select } from 'antd'
import { lazy, Suspense, useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { queries } from '../../api/queries'
import type { Cause, Run, RunState } from '../../api/types'
import { ExecutorSelect } from '../../ui/ExecutorSelect'
import { useDraftSearch, useNow } from '../../ui/hooks'
import { Page } from '../../ui/Page'
import { Pager, ResourceTable, type Column } from '../../ui/ResourceTable'
import { SearchBox } from '../../ui/SearchBox'
import { RunStateChip } from '../../ui/StateChip'
import { RunBars } from './RunBars'
import { Blank } from '../../ui/States'
import { DurationText, RelativeTime } from '../../ui/TimeText'
import { loadChunk } from '../../lib/chunk'
import { whyLine } from '../../lib/why'
import { CAUSES, isFiltered, newestFirst, RANGES, RUN_STATES, runsQuery, splitList, type Range, type RunsSearch } from '../../lib/search'

const RangePicker = lazy(() => loadChunk(() => import('./RangePicker')))

function anHourAgo(): string {
  const minute = 60_000
  return new Date(Math.floor(Date.now() / minute) * minute - 60 * minute).toISOString()
}

export function RunsPage() {
  const { t } = useTranslation()
  const search = useSearch({ from: '/app/runs' })
  const navigate = useNavigate()
  const go = (change: RunsSearch) => void navigate({ to: '/runs', search: change })
  return (
    <Page title={t('runs.list.title')}>
      <RunFilters search={search} onChange={go} />
      <RunBars search={search} onChange={go} />
      <RunTable search={search} onChange={go} />
    </Page>
  )
}

export interface Controlled {
  search: RunsSearch
  onChange: (search: RunsSearch) => void
  /** On a job's own page the job is fixed. */
  jobId?: string
}

export function RunFilters({ search: committed, onChange: commit, jobId }: Controlled) {
  const { t } = useTranslation()
  const [search, onChange] = useDraftSearch(committed, commit)
  const set = (change: Partial<RunsSearch>) => onChange({ ...search, cursor: undefined, ...change })
  const custom = Boolean(search.from ?? search.to)
  return (
    <div className="filters" role="search" aria-label={t('runs.list.title')}>
      {!jobId && <SearchBox value={search.q} onChange={(q) => set({ q })} label={t('runs.list.jobSearch')} />}
      <Select
        className="f-item wide"
        mode="multiple"
        allowClear
        maxTagCount="responsive"
        showSearch={{ optionFilterProp: 'label' }}
        aria-label={t('field.state')}
        placeholder={t('field.state')}
        value={splitList<RunState>(search.state)}
        onChange={(states: RunState[]) => set({ state: RUN_STATES.filter((one) => states.includes(one)).join(',') || undefined })}
        options={RUN_STATES.map((state) => ({ value: state, label: t(`runs.state.${state}`) }))}
        optionRender={(option) => <RunStateChip state={option.value as RunState} />}
      />
      <Select
        className="f-item"
        allowClear
        aria-label={t('runs.list.cause')}
        placeholder={t('runs.list.cause')}
        value={search.cause}
        onChange={(cause: Cause | undefined) => set({ cause })}
        options={CAUSES.map((cause) => ({ value: cause, label: t(`runs.cause.${cause}`) }))}
      />
      {!jobId && (
        <div className="f-item">
          <ExecutorSelect
            allowClear
            value={search.executorId}
            onChange={(executorId) => set({ executorId })}
            label={t('runs.list.executor')}
            placeholder={t('runs.list.executor')}
          />
        </div>
      )}
      <Select
        className="f-item"
        allowClear
        aria-label={t('runs.list.time')}
        placeholder={t('runs.list.time')}
        value={custom ? 'custom' : search.range}
        onChange={(range: Range | 'custom' | undefined) =>
          range === 'custom'
            ? set({ range: undefined, from: anHourAgo() })
            : set({ range, from: undefined, to: undefined })
        }
        options={[...RANGES, 'custom' as const].map((range) => ({ value: range, label: t(`runs.range.${range}`) }))}
      />
      {custom && (
        <Suspense fallback={null}>
          <RangePicker from={search.from} to={search.to} onChange={(from, to) => set({ from, to })} />
        </Suspense>
      )}
      {!jobId && search.jobId && (
        <Button onClick={() => set({ jobId: undefined })}>
          <JobFilterText id={search.jobId} /> ✕
        </Button>
      )}
      {search.instanceId && (
        <Button onClick={() => set({ instanceId: undefined })}>
          <InstanceFilterText id={search.instanceId} /> ✕
        </Button>
      )}
      {search.fingerprint && (
        <Button title={t('errorGroups.filterHelp')} onClick={() => set({ fingerprint: undefined })}>
          {t('errorGroups.filter', { fingerprint: search.fingerprint })} ✕
        </Button>
      )}
      {isFiltered(search) && (
        <Button type="link" onClick={() => onChange({})}>
          {t('action.clearFilters')}
        </Button>
      )}
    </div>
  )
}

function JobFilterText({ id }: { id: string }) {
  const { t } = useTranslation()
  const job = useQuery({ ...queries.job(id), refetchInterval: false })
  return <>{t('runs.list.ofJob', { name: job.data?.name ?? id })}</>
}

/** Runs name the instance that they were sent to. */
function InstanceFilterText({ id }: { id: string }) {
  const { t } = useTranslation()
  const runs = useQuery({ ...queries.runs({ instanceId: id, limit: 1 }), refetchInterval: false })
  const instance = runs.data?.items.find((run) => run.instance?.id === id)?.instance
  return <>{t('runs.list.ofInstance', { name: instance?.name ?? id })}</>
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
            <span className="clip" title={run.error || run.message || why}>
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
