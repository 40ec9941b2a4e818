// The processes of all executors with their state and host, lost ones first.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { fleetQuery } from './executors'
import type { FleetInstance } from '../../api/types'
import { useQuery } from '../../api/useQuery'
import { FleetTabs } from './FleetTabs'
import { Load } from './InstanceLoad'
import { said } from '../../lib/said'
import { Page } from '../../ui/Page'
import { Pager, ResourceTable, type Column } from '../../ui/ResourceTable'
import { InstanceStateChip } from '../../ui/StateChip'
import { Blank } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'

const LIMIT = 100

export function InstancesPage() {
  const { t } = useTranslation()
  const { cursor } = useSearch({ from: '/app/executors/instances' })
  const navigate = useNavigate()
  const instances = useQuery(fleetQuery({ limit: LIMIT, ...(cursor ? { cursor } : {}) }))
  const columns: Column<FleetInstance>[] = [
    {
      key: 'name',
      title: t('field.name'),
      kind: 'title',
      render: ({ instance }) => (
        <Link to="/runs" search={{ instanceId: instance.id }}>
          <strong>{instance.name}</strong>
        </Link>
      ),
    },
    {
      key: 'executor',
      title: t('alerts.executor'),
      render: (one) => (
        <Link to="/executors/$executorId" params={{ executorId: one.executorId }} search={{}}>
          {one.executorName || one.executorId}
        </Link>
      ),
    },
    {
      key: 'state',
      title: t('field.state'),
      render: ({ lost, instance }) => (
        <div>
          {lost ? <span className="st-lost">{t('executors.lost')}</span> : <InstanceStateChip state={instance.state} />}
          {instance.goneAt && (
            <div className="muted small">
              <RelativeTime at={instance.goneAt} /> {said(instance.goneReason, t)}
            </div>
          )}
        </div>
      ),
    },
    { key: 'load', title: t('executors.load'), render: ({ instance }) => <Load instance={instance} /> },
    {
      key: 'host',
      title: t('executors.host'),
      render: ({ instance }) => (
        <span className="mono">
          {instance.host} <span className="muted">#{instance.pid}</span>
          {instance.address && <div className="muted small">{instance.address}</div>}
        </span>
      ),
    },
    { key: 'version', title: t('field.version'), render: ({ instance }) => instance.version || '—' },
    { key: 'heartbeat', title: t('executors.heartbeat'), render: ({ instance }) => <RelativeTime at={instance.lastHeartbeatAt} /> },
  ]
  return (
    <Page title={t('executors.allInstances')} help={t('executors.allInstancesHelp')} tabs={<FleetTabs />}>
      <div className="card flush">
        <ResourceTable
          label={t('executors.allInstances')}
          columns={columns}
          rows={instances.data?.items}
          rowKey={(one) => one.instance.id}
          error={instances.error}
          onRetry={() => void instances.refetch()}
          empty={<Blank title={t('executors.noInstances')} help={t('executors.noInstancesHelp')} />}
        />
        <Pager cursor={cursor} nextCursor={instances.data?.nextCursor} onGo={(next) => void navigate({ to: '/executors/instances', search: next ? { cursor: next } : {} })} />
      </div>
    </Page>
  )
}
