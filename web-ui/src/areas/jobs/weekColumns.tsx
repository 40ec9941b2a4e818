// The columns of a job's last 7 days, and the orders of the list.
import type { TFunction } from 'i18next'
import type { Job } from '../../api/types'
import { humanDuration } from '../../lib/duration'
import type { JobsSearch } from '../../lib/search'
import type { Column } from '../../ui/ResourceTable'

const none = <span className="muted">—</span>
const duration = (ms: number | null | undefined, t: TFunction) => (ms === null || ms === undefined ? none : humanDuration(ms, t))

export function weekColumns(t: TFunction): Column<Job>[] {
  return [
    {
      key: 'failures',
      title: t('jobs.week.failures'),
      align: 'right',
      render: ({ stats7d }) => (stats7d ? <span className={stats7d.failed > 0 ? 'st-failed' : 'muted'}>{t('jobs.week.failedOf', { failed: stats7d.failed, runs: stats7d.runs })}</span> : none),
    },
    { key: 'lateness', title: t('jobs.week.lateness'), align: 'right', render: ({ stats7d }) => duration(stats7d?.latenessP95Ms, t) },
    { key: 'p95', title: t('jobs.week.p95'), align: 'right', render: ({ stats7d }) => duration(stats7d?.p95Ms, t) },
  ]
}

/** Which order a column is in. Names and times ascend, the others descend. */
const ORDERS: Record<string, NonNullable<JobsSearch['sort']>> = { name: 'name', next: 'nextFireAt', failures: 'failures', lateness: 'lateness', p95: 'p95' }

/** Makes the titles of columns with an order buttons. */
export function sortable(columns: Column<Job>[], sort: JobsSearch['sort'], onSort: (sort: JobsSearch['sort']) => void): Column<Job>[] {
  return columns.map((column) => {
    const order = ORDERS[column.key]
    if (!order) return column
    const ascends = order === 'name' || order === 'nextFireAt'
    return { ...column, onSort: () => onSort(order === 'name' ? undefined : order), ...((sort ?? 'name') === order && { sorted: ascends ? 'ascending' : 'descending' }) }
  })
}
