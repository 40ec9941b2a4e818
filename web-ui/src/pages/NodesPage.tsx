import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { queries } from '../api/queries'
import type { Node } from '../api/types'
import { Page } from '../components/Page'
import { ResourceTable, type Column } from '../components/ResourceTable'
import { Blank } from '../components/States'
import { RelativeTime } from '../components/TimeText'

/** The servers which share this database. */
export function NodesPage() {
  const { t } = useTranslation()
  const nodes = useQuery(queries.nodes())
  const columns: Column<Node>[] = [
    {
      key: 'name',
      title: t('nodes.name'),
      kind: 'title',
      render: (one) => (
        <span className="row tight">
          <strong>{one.name}</strong>
          {one.current && <span className="label-chip">{t('nodes.current')}</span>}
        </span>
      ),
    },
    { key: 'version', title: t('field.version'), render: (one) => one.version },
    { key: 'sessions', title: t('nodes.sessions'), align: 'right', render: (one) => <span className="num">{one.sessions}</span> },
    { key: 'started', title: t('nodes.started'), render: (one) => <RelativeTime at={one.startedAt} /> },
    { key: 'heartbeat', title: t('nodes.heartbeat'), render: (one) => <RelativeTime at={one.lastHeartbeatAt} /> },
  ]
  return (
    <Page title={t('nodes.title')} sub={t('nodes.help')}>
      <div className="card flush">
        <ResourceTable
          label={t('nodes.title')}
          columns={columns}
          rows={nodes.data?.items}
          rowKey={(one) => one.id}
          error={nodes.error}
          onRetry={() => void nodes.refetch()}
          empty={<Blank title={t('nodes.title')} />}
        />
      </div>
    </Page>
  )
}
