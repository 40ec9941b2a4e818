// By which means a tenant is told. Keys are written only: a field that is left
// empty keeps what is there.
import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { alertApi, alertQueries, refreshAlerts } from './alerts'
import type { AlertChannel } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { ByWhom } from '../../ui/ByWhom'
import { ChannelTest } from './ChannelTest'
import { useCan } from '../../ui/hooks'
import { LinkButton } from '../../ui/LinkButton'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { Blank } from '../../ui/States'
import { useDanger } from '../../ui/useDanger'

export function AlertChannelsTab() {
  const { t } = useTranslation()
  const danger = useDanger()
  const canEdit = useCan('editor')
  const channels = useQuery(alertQueries.channels())
  const remove = (one: AlertChannel) =>
    danger({
      title: t('alerts.channels.deleteTitle', { name: one.name }),
      content: t('alerts.channels.deleteHelp'),
      action: t('action.delete'),
      work: () => alertApi.deleteChannel(one.id),
      done: t('alerts.channels.deleted', { name: one.name }),
      after: refreshAlerts,
    })
  const columns: Column<AlertChannel>[] = [
    {
      key: 'name',
      title: t('field.name'),
      kind: 'title',
      render: (one) => (
        <div>
          {canEdit ? (
            <Link to="/settings/notifications/channels/$channelId" params={{ channelId: one.id }}>
              <strong>{one.name}</strong>
            </Link>
          ) : (
            <strong>{one.name}</strong>
          )}{' '}
          {one.spec.enabled === false && <span className="label-chip">{t('alerts.channels.disabled')}</span>}
          {one.spec.description && <div className="muted small">{one.spec.description}</div>}
        </div>
      ),
    },
    { key: 'kind', title: t('alerts.channels.kind'), render: (one) => t(`deliveries.${one.spec.kind}`) },
    { key: 'to', title: t('alerts.channels.to'), render: (one) => <span className="any-wrap">{one.spec.host || one.spec.emails?.join(', ') || one.spec.chatId || one.spec.baseUrl || '—'}</span> },
    { key: 'updated', title: t('field.updated'), render: (one) => <ByWhom who={one.updatedBy} at={one.updatedAt} /> },
  ]
  if (canEdit) {
    columns.push({
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (one) => (
        <span className="row tight">
          <ChannelTest channel={one} compact />
          <ActionButton size="small" danger onClick={() => remove(one)} aria-label={`${t('action.delete')}: ${one.name}`}>
            {t('action.delete')}
          </ActionButton>
        </span>
      ),
    })
  }
  const create = canEdit && (
    <LinkButton to="/settings/notifications/channels/new" primary icon={<PlusOutlined />}>
      {t('alerts.channels.create')}
    </LinkButton>
  )
  return (
    <section className="card flush" aria-label={t('alerts.channels.tab')}>
      <div className="card-head">
        <p className="muted small grow">{t('alerts.channels.help')}</p>
        {create}
      </div>
      <ResourceTable
        label={t('alerts.channels.tab')}
        columns={columns}
        rows={channels.data?.items}
        rowKey={(one) => one.id}
        error={channels.error}
        onRetry={() => void channels.refetch()}
        empty={<Blank title={t('alerts.channels.emptyTitle')} help={t('alerts.channels.emptyHelp')} />}
      />
    </section>
  )
}
