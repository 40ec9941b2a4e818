import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../api/useQuery'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { Button, Select } from 'antd'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { proposalQueries } from '../api/proposals'
import { queries } from '../api/queries'
import type { Job } from '../api/types'
import { ExecutorSelect } from '../components/ExecutorSelect'
import { useCan, useDraftSearch } from '../components/hooks'
import { JobActions } from '../components/jobActions'
import { LinkButton } from '../components/LinkButton'
import { PausedBy } from '../components/PausedBy'
import { RecentRuns } from '../components/Outcomes'
import { Page } from '../components/Page'
import { Pager, ResourceTable, type Column } from '../components/ResourceTable'
import { ScheduleText } from '../components/ScheduleText'
import { SearchBox } from '../components/SearchBox'
import { JobStateChip, OnlineCount, RunStateChip } from '../components/StateChip'
import { Blank } from '../components/States'
import { RelativeTime } from '../components/TimeText'
import { isFiltered, type JobsSearch } from '../lib/search'

export function JobsPage() {
  const { t } = useTranslation()
  const committed = useSearch({ from: '/app/jobs' })
  const navigate = useNavigate()
  const [search, setSearch] = useDraftSearch(committed, (next: JobsSearch) => void navigate({ to: '/jobs', search: next }))
  const canEdit = useCan('editor')
  const jobs = useQuery(queries.jobs({ ...committed }))
  const waiting = useQuery(proposalQueries.proposals()).data?.items.length ?? 0
  const columns = useJobColumns()

  // A changed filter starts at the first page.
  const go = (change: Partial<JobsSearch>) => setSearch({ ...search, cursor: undefined, ...change })
  const filtered = isFiltered(search)
  return (
    <Page
      title={t('jobs.list.title')}
      actions={
        <>
          {waiting > 0 && <LinkButton to="/jobs/proposals">{t('proposals.waiting', { count: waiting })}</LinkButton>}
          {canEdit && (
            <LinkButton to="/jobs/new" primary icon={<PlusOutlined />}>
              {t('jobs.list.create')}
            </LinkButton>
          )}
        </>
      }
    >
      <div className="filters" role="search" aria-label={t('jobs.list.title')}>
        <SearchBox value={search.q} onChange={(q) => go({ q })} label={t('jobs.list.search')} />
        <div className="f-item">
          <ExecutorSelect
            allowClear
            value={search.executorId}
            onChange={(executorId) => go({ executorId })}
            label={t('jobs.list.executor')}
            placeholder={t('jobs.list.executor')}
          />
        </div>
        <Select
          className="f-item"
          allowClear
          aria-label={t('jobs.list.state')}
          placeholder={t('jobs.list.state')}
          value={search.state}
          onChange={(state: JobsSearch['state']) => go({ state })}
          options={[
            { value: 'enabled', label: t('jobs.state.enabled') },
            { value: 'paused', label: t('jobs.state.paused') },
          ]}
        />
        <Select
          className="f-item"
          aria-label={t('jobs.list.kind')}
          value={search.kind ?? 'job'}
          onChange={(kind: NonNullable<JobsSearch['kind']> | 'job') => go({ kind: kind === 'job' ? undefined : kind })}
          options={(['job', 'call', 'callback', 'timer', 'all'] as const).map((value) => ({ value, label: t(`jobs.list.kind_${value}`) }))}
        />
        <Select
          className="f-item"
          aria-label={t('jobs.list.sort')}
          value={search.sort ?? 'name'}
          onChange={(sort: NonNullable<JobsSearch['sort']>) => go({ sort: sort === 'name' ? undefined : sort })}
          options={[
            { value: 'name', label: `${t('jobs.list.sort')}: ${t('jobs.list.sortName')}` },
            { value: 'nextFireAt', label: `${t('jobs.list.sort')}: ${t('jobs.list.sortNext')}` },
            { value: 'updatedAt', label: `${t('jobs.list.sort')}: ${t('jobs.list.sortUpdated')}` },
          ]}
        />
        {search.handler && <Button onClick={() => go({ handler: undefined })}>{t('jobs.list.handler', { handler: search.handler })} ✕</Button>}
        {search.label && <Button onClick={() => go({ label: undefined })}>{t('jobs.list.label', { label: search.label })} ✕</Button>}
        {filtered && (
          <Button type="link" onClick={() => setSearch(search.sort ? { sort: search.sort } : {})}>
            {t('action.clearFilters')}
          </Button>
        )}
      </div>
      <div className="card flush">
        <ResourceTable
          label={t('jobs.list.title')}
          columns={columns}
          rows={jobs.data?.items}
          rowKey={(job) => job.id}
          error={jobs.error}
          onRetry={() => void jobs.refetch()}
          updatedAt={jobs.dataUpdatedAt}
          filtered={filtered}
          onClearFilters={() => setSearch({})}
          empty={<NoJobs canEdit={canEdit} />}
          pager={<Pager cursor={search.cursor} nextCursor={jobs.data?.nextCursor} onGo={(cursor) => go({ cursor })} />}
        />
      </div>
    </Page>
  )
}

function NoJobs({ canEdit }: { canEdit: boolean }) {
  const { t } = useTranslation()
  const executors = useQuery(queries.executors({ limit: 1 }))
  const none = executors.data?.items.length === 0
  return (
    <Blank title={t('jobs.list.emptyTitle')} help={none ? t('jobs.list.noExecutor') : t('jobs.list.emptyHelp')}>
      {none ? (
        <LinkButton to="/executors" primary>
          {t('jobs.list.toExecutors')}
        </LinkButton>
      ) : (
        canEdit && (
          <LinkButton to="/jobs/new" primary>
            {t('jobs.list.create')}
          </LinkButton>
        )
      )}
    </Blank>
  )
}

function JobName({ job }: { job: Job }) {
  return (
    <div style={{ minWidth: 130 }}>
      <Link to="/jobs/$jobId" params={{ jobId: job.id }}>
        <strong>{job.name}</strong>
      </Link>
      <div className="row tight">
        {Object.entries(job.labels).map(([key, value]) => (
          <Link key={key} to="/jobs" search={{ label: `${key}=${value}` }} className="label-chip" preload={false}>
            {key}={value}
          </Link>
        ))}
      </div>
    </div>
  )
}

export function NextFire({ job }: { job: Job }) {
  const { t } = useTranslation()
  if (job.neverFires) return <span className="st-timeout">{t('jobs.list.neverFires')}</span>
  if (job.state === 'paused' || !job.nextFireAt) return <span className="muted">—</span>
  return <RelativeTime at={job.nextFireAt} zone={job.schedule.zone} />
}

function useJobColumns(): Column<Job>[] {
  const { t } = useTranslation()
  const canRun = useCan('operator')
  return useMemo(() => {
    const columns: Column<Job>[] = [
      { key: 'name', title: t('field.name'), kind: 'title', render: (job) => <JobName job={job} /> },
      { key: 'schedule', title: t('jobs.list.schedule'), render: (job) => <ScheduleText schedule={job.schedule} /> },
      { key: 'next', title: t('jobs.list.nextFire'), render: (job) => <NextFire job={job} /> },
      {
        key: 'last',
        title: t('jobs.list.lastRun'),
        render: (job) =>
          job.lastRun ? (
            <div>
              <Link to="/runs/$runId" params={{ runId: job.lastRun.id }}>
                <RunStateChip state={job.lastRun.state} />
              </Link>
              <div className="muted small">
                <RelativeTime at={job.lastRun.finishedAt ?? job.lastRun.fireAt} zone={job.schedule.zone} />
              </div>
              {job.recentRuns.length > 1 && <RecentRuns runs={job.recentRuns} />}
              {job.pilesUp && <div className="st-timeout small">{t('jobs.list.pilesUp', { count: job.waiting })}</div>}
            </div>
          ) : (
            <span className="muted">{t('jobs.list.noRun')}</span>
          ),
      },
      { key: 'owner', title: t('jobs.list.owner'), render: (job) => <span title={job.owner.email}>{job.owner.name || job.owner.email || '—'}</span> },
      {
        key: 'executor',
        title: t('jobs.list.executor'),
        render: (job) => (
          <div>
            <Link to="/executors/$executorId" params={{ executorId: job.executor.id }} className="executor-name">
              {job.executor.name}
            </Link>
            <div className="small">
              <OnlineCount count={job.executorOnline} />
            </div>
          </div>
        ),
      },
      {
        key: 'state',
        title: t('field.state'),
        render: (job) => (
          <>
            <JobStateChip state={job.state} />
            {job.state === 'paused' && (
              <div className="small muted">
                <PausedBy job={job} />
              </div>
            )}
          </>
        ),
      },
    ]
    if (canRun) columns.push({ key: 'actions', title: t('field.actions'), kind: 'actions', render: (job) => <JobActions job={job} compact /> })
    return columns
  }, [t, canRun])
}
