import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { lazy, Suspense, useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { proposalQueries } from './change/proposals'
import { queries } from '../../api/queries'
import type { Job } from '../../api/types'
import { Peal } from '../../charts/Peal'
import { useCan, useDraftSearch } from '../../ui/hooks'
import { JobActions } from './jobActions'
import { JobFilters } from './JobFilters'
import { LinkButton } from '../../ui/LinkButton'
import { ExecutorCell, JobName, LastRunCell, NextOrPaused } from './jobCells'
import { Page } from '../../ui/Page'
import { Pager, ResourceTable, type Column } from '../../ui/ResourceTable'
import { ShortSchedule } from './ShortSchedule'
import { Blank, PageSkeleton } from '../../ui/States'
import { loadChunk } from '../../lib/chunk'
import { isFiltered, type JobsSearch } from '../../lib/search'
import { JobCounters } from './JobCounters'
import { JobGroups } from './JobGroups'
import { sortable, weekColumns } from './weekColumns'

const Proposals = lazy(() => loadChunk(() => import('./change/Proposals')))
const DeletedJobs = lazy(() => loadChunk(() => import('./change/DeletedJobs')))

/** How many runs the strip of a job shows. */
const RUNS_SHOWN = 20

export function JobsPage() {
  const { t } = useTranslation()
  const committed = useSearch({ from: '/app/jobs' })
  const navigate = useNavigate()
  const [search, setSearch] = useDraftSearch(committed, (next: JobsSearch) => void navigate({ to: '/jobs', search: next }))
  const canEdit = useCan('editor')
  const { proposed, deleted, group, ...query } = committed
  const jobs = useQuery({ ...queries.jobs({ ...query, recent: RUNS_SHOWN }), enabled: !proposed && !deleted && !group })
  const waiting = useQuery(proposalQueries.proposals()).data?.items.length ?? 0

  // A changed filter starts at the first page.
  const go = (change: Partial<JobsSearch>) => setSearch({ ...search, cursor: undefined, ...change })
  const columns = sortable(useJobColumns(), search.sort, (sort) => go({ sort }))
  const { state, sort: _sort, cursor: _cursor, ...counted } = query
  const filtered = isFiltered(search)
  const clear = () => setSearch({ sort: search.sort, group: search.group })
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
      {!deleted && <JobFilters search={search} onChange={go} onClear={clear} />}
      {!proposed && (
        <JobCounters query={counted} state={state} onState={(next) => go({ state: next, deleted: undefined })} deleted={Boolean(deleted)} onDeleted={() => setSearch({ deleted: '1' })} />
      )}
      {proposed || deleted ? (
        <Suspense fallback={<PageSkeleton />}>{proposed ? <Proposals /> : <DeletedJobs cursor={committed.cursor} onGo={(cursor) => go({ cursor })} />}</Suspense>
      ) : group ? (
        <div className="card flush">
          <JobGroups by={group} query={{ ...query, cursor: undefined, recent: RUNS_SHOWN }} columns={columns} onClearFilters={clear} />
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
          onClearFilters={clear}
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
