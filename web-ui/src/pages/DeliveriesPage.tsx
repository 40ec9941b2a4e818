import { useQuery } from '../api/useQuery'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { queries } from '../api/queries'
import type { Delivery } from '../api/types'
import { Page } from '../components/Page'
import { Pager, ResourceTable, type Column } from '../components/ResourceTable'
import { DeliveryStateChip } from '../components/StateChip'
import { Blank } from '../components/States'
import { RelativeTime } from '../components/TimeText'

/** Who was told what, by which means, and whether it arrived. */
export function DeliveriesPage() {
  const { t, i18n } = useTranslation()
  const { cursor } = useSearch({ from: '/app/deliveries' })
  const navigate = useNavigate()
  const deliveries = useQuery(queries.deliveries({ cursor }))
  // A kind which a newer server knows is shown as it is.
  const kindText = (kind: string) => (i18n.exists(`deliveries.kinds.${kind}`) ? t(`deliveries.kinds.${kind}` as 'deliveries.kinds.run_failed') : kind)
  const columns: Column<Delivery>[] = [
    { key: 'kind', title: t('deliveries.kind'), kind: 'title', render: (one) => <strong>{kindText(one.kind)}</strong> },
    { key: 'state', title: t('field.state'), render: (one) => <DeliveryStateChip state={one.state} /> },
    { key: 'channel', title: t('deliveries.channel'), render: (one) => t(`deliveries.${one.channel}`) },
    { key: 'target', title: t('deliveries.target'), render: (one) => <span style={{ overflowWrap: 'anywhere' }}>{one.target}</span> },
    {
      key: 'about',
      title: `${t('deliveries.job')} / ${t('deliveries.run')}`,
      render: (one) => (
        <span className="row tight">
          {one.jobId && (
            <Link to="/jobs/$jobId" params={{ jobId: one.jobId }}>
              {t('deliveries.job')} <span className="mono">{one.jobId}</span>
            </Link>
          )}
          {one.runId && (
            <Link to="/runs/$runId" params={{ runId: one.runId }}>
              {t('deliveries.run')} <span className="mono">{one.runId}</span>
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
          {one.lastError && <div className="st-failed small" style={{ maxWidth: 260, overflowWrap: 'anywhere' }}>{one.lastError}</div>}
        </span>
      ),
    },
  ]
  return (
    <Page title={t('deliveries.title')}>
      <div className="card flush">
        <ResourceTable
          label={t('deliveries.title')}
          columns={columns}
          rows={deliveries.data?.items}
          rowKey={(one) => one.id}
          error={deliveries.error}
          onRetry={() => void deliveries.refetch()}
          empty={<Blank title={t('deliveries.emptyTitle')} help={t('deliveries.emptyHelp')} />}
          pager={<Pager cursor={cursor} nextCursor={deliveries.data?.nextCursor} onGo={(next) => void navigate({ to: '/deliveries', search: next ? { cursor: next } : {} })} />}
        />
      </div>
    </Page>
  )
}
