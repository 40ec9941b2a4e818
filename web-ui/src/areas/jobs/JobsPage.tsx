import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Button, Select } from 'antd'
import { lazy, Suspense, useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { proposalQueries } from './change/proposals'
import { queries } from '../../api/queries'
import type { Job } from '../../api/types'
import { Peal } from '../../charts/Peal'
import { ExecutorSelect } from '../../ui/ExecutorSelect'
import { useCan, useDraftSearch } from '../../ui/hooks'
import { JobActions } from './jobActions'
import { LinkButton } from '../../ui/LinkButton'
import { ExecutorCell, JobName, LastRunCell, NextOrPaused } from './jobCells'
import { Page } from '../../ui/Page'
import { Pager, ResourceTable, type Column } from '../../ui/ResourceTable'
import { ShortSchedule } from './ShortSchedule'
import { SearchBox } from '../../ui/SearchBox'
import { Blank, PageSkeleton } from '../../ui/States'
import { loadChunk } from '../../lib/chunk'
import { isFiltered, JOB_GROUPS, JOB_SORTS, JOB_STATES, type JobsSearch } from '../../lib/search'
import { JobCounters } from './JobCounters'
import { JobGroups } from './JobGroups'
import { sortable, weekColumns } from './weekColumns'

const Proposals = lazy(() => loadChunk(() => import('./change/Proposals')))

/** How many runs the strip of a job shows. */
const RUNS_SHOWN = 20

export function JobsPage() {
  const { t } = useTranslation()
  const committed = useSearch({ from: '/app/jobs' })
  const navigate = useNavigate()
  const [search, setSearch] = useDraftSearch(committed, (next: JobsSearch) => void navigate({ to: '/jobs', search: next }))
  const canEdit = useCan('editor')
  const { proposed, group, ...query } = committed
  const jobs = useQuery({ ...queries.jobs({ ...query, recent: RUNS_SHOWN }), enabled: !proposed && !group })
  const waiting = useQuery(proposalQueries.proposals()).data?.items.length ?? 0

  // A changed filter starts at the first page.
  const go = (change: Partial<JobsSearch>) => setSearch({ ...search, cursor: undefined, ...change })
  const columns = sortable(useJobColumns(), search.sort, (sort) => go({ sort }))
  const { state, sort: _sort, cursor: _cursor, ...counted } = query
  const filtered = isFiltered(search)
  return (
    <Page
      title={t('jobs.list.title')}
      actions={
        <>
          {waiting > 0 && !proposed && <LinkButton to="/jobs" search={{ proposed: '1' }}>{t('proposals.waiting', { count: waiting })}</LinkButton>}
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
          options={JOB_STATES.map((value) => ({ value, label: t(`jobs.counts.state_${value}`) }))}
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
          options={JOB_SORTS.map((value) => ({ value, label: `${t('jobs.list.sort')}: ${t(`jobs.week.sort_${value}`)}` }))}
        />
        <Select
          className="f-item"
          allowClear
          aria-label={t('jobs.counts.groupBy')}
          placeholder={t('jobs.counts.groupBy')}
          value={search.group}
          onChange={(value: JobsSearch['group']) => go({ group: value })}
          options={JOB_GROUPS.map((value) => ({ value, label: t(`jobs.counts.by_${value}`) }))}
        />
        {proposed && <Button onClick={() => go({ proposed: undefined })}>{t('proposals.title')} ✕</Button>}
        {search.handler && <Button onClick={() => go({ handler: undefined })}>{t('jobs.list.handler', { handler: search.handler })} ✕</Button>}
        {search.label && <Button onClick={() => go({ label: undefined })}>{t('jobs.list.label', { label: search.label })} ✕</Button>}
        {filtered && (
          <Button type="link" onClick={() => setSearch(search.sort ? { sort: search.sort } : {})}>
            {t('action.clearFilters')}
          </Button>
        )}
      </div>
      {!proposed && <JobCounters query={counted} state={state} onState={(next) => go({ state: next })} />}
      {proposed ? (
        <Suspense fallback={<PageSkeleton />}>
          <Proposals />
        </Suspense>
      ) : group ? (
        <div className="card flush">
          <JobGroups by={group} query={{ ...query, cursor: undefined, recent: RUNS_SHOWN }} columns={columns} onClearFilters={() => setSearch({})} />
        </div>
      ) : (
      <div className="card flush">
        <ResourceTable
          label={t('jobs.list.title')}
          dense
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
      )}
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

function useJobColumns(): Column<Job>[] {
  const { t } = useTranslation()
  const canRun = useCan('operator')
  return useMemo(() => {
    const columns: Column<Job>[] = [
      { key: 'peal', title: t('jobs.list.lastRuns'), render: (job) => <Peal runs={job.recentRuns} name={job.name} zone={job.schedule.zone} /> },
      { key: 'name', title: t('field.name'), kind: 'title', render: (job) => <JobName job={job} /> },
      { key: 'schedule', title: t('jobs.list.schedule'), render: (job) => <ShortSchedule schedule={job.schedule} /> },
      { key: 'next', title: t('jobs.list.nextFire'), render: (job) => <NextOrPaused job={job} /> },
      { key: 'last', title: t('jobs.list.lastRun'), render: (job) => <LastRunCell job={job} /> },
      ...weekColumns(t),
      { key: 'executor', title: t('jobs.list.executor'), render: (job) => <ExecutorCell job={job} /> },
    ]
    if (canRun) columns.push({ key: 'actions', title: t('field.actions'), kind: 'actions', render: (job) => <JobActions job={job} compact /> })
    return columns
  }, [t, canRun])
}
