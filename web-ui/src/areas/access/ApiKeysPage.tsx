import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { accessApi, accessQueries, refreshKeys } from './access'
import type { ApiKey, KeyRole } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { BoundTo } from './BoundTo'
import { Page } from '../../ui/Page'
import { PeopleTabs } from './PeopleTabs'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { SecretDialog } from '../../ui/SecretDialog'
import { Blank } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'
import { useDanger } from '../../ui/useDanger'
import { later } from '../../ui/later'

const CreateKey = later(() => import('./CreateKey'))

const targetsOf = (one: ApiKey) => [...(one.executors ?? []), ...(one.callHandlers ?? [])]
const rolesOf = (one: ApiKey) => one.role.split('+') as KeyRole[]

export function ApiKeysPage() {
  const { t } = useTranslation()
  const danger = useDanger()
  const keys = useQuery(accessQueries.apiKeys())
  const [creating, setCreating] = useState(false)
  const [secret, setSecret] = useState<string>()
  const revoke = (key: ApiKey) =>
    danger({ title: t('keys.revokeTitle', { name: key.name }), content: t('keys.revokeHelp'), action: t('keys.revoke'), work: () => accessApi.deleteApiKey(key.id), done: t('keys.revoked'), after: refreshKeys })
  const columns: Column<ApiKey>[] = [
    { key: 'name', title: t('field.name'), kind: 'title', render: (one) => <strong>{one.name}</strong> },
    { key: 'prefix', title: t('keys.prefix'), render: (one) => <span className="mono">{one.prefix}…</span> },
    {
      key: 'role',
      title: t('field.role'),
      render: (one) => (
        <>
          {rolesOf(one)
            .map((role) => t(`role.${role}`))
            .join(', ')}
          <BoundTo names={targetsOf(one)} />
        </>
      ),
    },
    { key: 'created', title: t('field.created'), render: (one) => <RelativeTime at={one.createdAt} /> },
    { key: 'used', title: t('field.lastUsed'), render: (one) => <RelativeTime at={one.lastUsedAt} fallback={t('field.never')} /> },
    { key: 'expires', title: t('field.expires'), render: (one) => <RelativeTime at={one.expiresAt} fallback={t('tokens.forever')} /> },
    {
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (one) => (
        <ActionButton size="small" danger onClick={() => revoke(one)} aria-label={`${t('keys.revoke')}: ${one.name}`}>
          {t('keys.revoke')}
        </ActionButton>
      ),
    },
  ]
  const create = (
    <ActionButton type="primary" icon={<PlusOutlined />} onClick={() => setCreating(true)}>
      {t('keys.create')}
    </ActionButton>
  )
  return (
    <Page title={t('keys.title')} help={t('keys.help')} actions={create} tabs={<PeopleTabs />}>
      <div className="card flush">
        <ResourceTable
          label={t('keys.title')}
          columns={columns}
          rows={keys.data?.items}
          rowKey={(one) => one.id}
          error={keys.error}
          onRetry={() => void keys.refetch()}
          empty={<Blank title={t('keys.emptyTitle')} help={t('keys.emptyHelp')} />}
        />
      </div>
      {creating && (
        <CreateKey
          onClose={(made) => {
            setCreating(false)
            setSecret(made)
          }}
        />
      )}
      {secret && <SecretDialog title={t('keys.secretTitle')} help={t('tokens.secretHelp')} secret={secret} onClose={() => setSecret(undefined)} />}
    </Page>
  )
}
