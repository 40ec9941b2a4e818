// Who was told what, by which means, and whether it arrived.
import type { UseQueryResult } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import type { Delivery, Page } from '../../api/types'
import { useKindText } from './AlertWords'
import { said } from '../../lib/said'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { DeliveryStateChip } from '../../ui/StateChip'
import { RelativeTime } from '../../ui/TimeText'

interface Props {
  list: UseQueryResult<Page<Delivery>>
  empty: ReactNode
  /** Links to the incident and the job, where they are not the page's own. */
  incidents?: boolean
  filtered?: boolean
  onClearFilters?: () => void
  pager?: ReactNode
}

export function DeliveryTable({ list, incidents, ...table }: Props) {
  const { t } = useTranslation()
  const kind = useKindText()
  const columns: Column<Delivery>[] = [
    {
      key: 'kind',
      title: t('deliveries.kind'),
      kind: 'title',
      render: (one) =>
        incidents && one.incidentId ? (
          <Link to="/alerts/incidents/$incidentId" params={{ incidentId: one.incidentId }}>
            <strong className="nowrap">{kind(one.kind)}</strong>
          </Link>
        ) : (
          <strong className="nowrap">{kind(one.kind)}</strong>
        ),
    },
    { key: 'state', title: t('field.state'), render: (one) => <DeliveryStateChip state={one.state} /> },
    { key: 'channel', title: t('deliveries.channel'), render: (one) => t(`deliveries.${one.channel}`) },
    { key: 'target', title: t('deliveries.target'), render: (one) => <span className="any-wrap">{one.target}</span> },
    {
      key: 'about',
      title: incidents ? `${t('deliveries.job')} / ${t('deliveries.run')}` : t('deliveries.run'),
      render: (one) => (
        <span className="row tight">
          {incidents && one.jobId && (
            <Link to="/jobs/$jobId" params={{ jobId: one.jobId }}>
              {t('deliveries.job')} <span className="mono">{one.jobId}</span>
            </Link>
          )}
          {one.runId && (
            <Link to="/runs/$runId" params={{ runId: one.runId }}>
              {incidents && t('deliveries.run')} <span className="mono">{one.runId}</span>
            </Link>
          )}
        </span>
      ),
    },
    { key: 'created', title: t('field.created'), render: (one) => <RelativeTime at={one.createdAt} /> },
    { key: 'delivered', title: t('deliveries.delivered'), render: (one) => <RelativeTime at={one.deliveredAt} /> },
    {
      key: 'attempts',
      title: t('deliveries.attempts'),
      render: (one) => (
        <span>
          <span className="num">{one.attempts}</span>
          {one.lastError && <div className="st-failed small w-260-most any-wrap">{said(one.lastError, t)}</div>}
        </span>
      ),
    },
  ]
  return <ResourceTable label={t('deliveries.title')} columns={columns} rows={list.data?.items} rowKey={(one) => one.id} error={list.error} onRetry={() => void list.refetch()} updatedAt={list.dataUpdatedAt} {...table} />
}
