// Where the admin nodes send to themselves: addresses, and brokers.
import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { connectionQueries } from './connections'
import type { Connection } from '../../api/types'
import { IntegrationTabs } from './IntegrationTabs'
import { CallbackPolicyCard } from './CallbackPolicy'
import { useCan } from '../../ui/hooks'
import { LinkButton } from '../../ui/LinkButton'
import { NamedTable } from '../../ui/NamedTable'
import { Page } from '../../ui/Page'
import type { Column } from '../../ui/ResourceTable'

export function ConnectionsPage() {
  const { t } = useTranslation()
  const { cursor } = useSearch({ from: '/app/settings/integrations/connections' })
  const navigate = useNavigate()
  const canEdit = useCan('editor')
  const connections = useQuery(connectionQueries.list(cursor))
  const create = canEdit && (
    <LinkButton to="/settings/integrations/connections/new" primary icon={<PlusOutlined />}>
      {t('connections.create')}
    </LinkButton>
  )
  const columns: Column<Connection>[] = [
    { key: 'broker', title: t('connections.broker'), render: (one) => t(`connections.brokers.${one.spec.broker}`) },
    { key: 'addresses', title: t('connections.addresses'), render: (one) => <span className="mono">{one.spec.addresses.join(', ')}</span> },
    { key: 'tls', title: t('connections.tls'), render: (one) => t(one.spec.tls?.enabled ? 'connections.tlsOn' : 'connections.tlsOff') },
  ]
  return (
    <Page title={t('connections.title')} help={t('connections.help')} actions={create} tabs={<IntegrationTabs />}>
      <div className="stack">
        <h2>{t('connections.list')}</h2>
        <NamedTable
          label={t('connections.list')}
          list={connections}
          link={(one, name) => (
            <Link to="/settings/integrations/connections/$connectionId" params={{ connectionId: one.id }}>
              {name}
            </Link>
          )}
          columns={columns}
          emptyTitle={t('connections.emptyTitle')}
          emptyHelp={t('connections.emptyHelp')}
          create={create}
          cursor={cursor}
          onGo={(next) => void navigate({ to: '/settings/integrations/connections', search: next ? { cursor: next } : {} })}
        />
        <CallbackPolicyCard />
      </div>
    </Page>
  )
}
