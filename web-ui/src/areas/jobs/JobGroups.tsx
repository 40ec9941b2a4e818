// The jobs by executor, owner or label. The server counts the groups; an open one is a list with a filter.
import './counters.css'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { JobsQuery } from '../../api/endpoints'
import { jobCounts } from '../../api/jobCounts'
import { queries } from '../../api/queries'
import type { Job, JobGroup } from '../../api/types'
import { useQuery } from '../../api/useQuery'
import type { JobsSearch } from '../../lib/search'
import { Pager, ResourceTable, type Column } from '../../ui/ResourceTable'
import { ErrorState, FilteredBlank, PageSkeleton } from '../../ui/States'

type Grouping = NonNullable<JobsSearch['group']>

/** The filter that leaves the jobs of a group. */
export function filterOf(by: Grouping, group: JobGroup, query: JobsQuery): JobsQuery {
  switch (by) {
    case 'executor':
      return { ...query, executorId: group.id }
    case 'owner':
      return { ...query, owner: `=${group.name}` }
    case 'label':
      return { ...query, label: query.label ? `${query.label},${group.name}` : group.name }
  }
}

interface Props {
  by: Grouping
  /** The filter and the order of the list. */
  query: JobsQuery
  columns: Column<Job>[]
  onClearFilters: () => void
}

const GROUPS = 100

export function JobGroups({ by, query, columns, onClearFilters }: Props) {
  const { t } = useTranslation()
  const { sort: _sort, recent: _recent, cursor: _cursor, ...filter } = query
  const counts = useQuery(jobCounts({ ...filter, groupBy: by, top: GROUPS }))
  const [open, setOpen] = useState<string>()
  if (!counts.data) return counts.error ? <ErrorState error={counts.error} onRetry={() => void counts.refetch()} /> : <PageSkeleton />
  const groups = counts.data.groups ?? []
  if (groups.length === 0) return <FilteredBlank onClear={onClearFilters} />
  return (
    <>
      {groups.map((group) => {
        const name = group.name || t('jobs.counts.noOwner')
        const key = group.id ?? group.name
        return (
          <section key={key} aria-label={name}>
            <h2 className="group-head">
              <button type="button" aria-expanded={open === key} onClick={() => setOpen(open === key ? undefined : key)}>
                <span aria-hidden="true">{open === key ? '▾' : '▸'}</span> {name} <span className="muted">{t('jobs.counts.jobs', { count: group.jobs })}</span>
              </button>
            </h2>
            {open === key && <Group name={name} query={filterOf(by, group, query)} columns={columns} />}
          </section>
        )
      })}
      {counts.data.moreGroups && <p className="muted small group-more">{t('jobs.counts.moreGroups', { count: GROUPS })}</p>}
    </>
  )
}

function Group({ name, query, columns }: { name: string; query: JobsQuery; columns: Column<Job>[] }) {
  const [cursor, setCursor] = useState<string>()
  const jobs = useQuery(queries.jobs({ ...query, cursor }))
  return (
    <ResourceTable
      label={name}
      dense
      columns={columns}
      rows={jobs.data?.items}
      rowKey={(job) => job.id}
      error={jobs.error}
      onRetry={() => void jobs.refetch()}
      updatedAt={jobs.dataUpdatedAt}
      empty={<FilteredBlank />}
      pager={<Pager cursor={cursor} nextCursor={jobs.data?.nextCursor} onGo={setCursor} />}
    />
  )
}
