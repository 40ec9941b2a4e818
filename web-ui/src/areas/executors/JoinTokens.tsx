// Join tokens of an executor, and the way of a newcomer: make one, copy a
// program, see the instance arrive.
import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { joiningApi, joiningQueries } from './joining'
import { queryClient } from '../../api/queries'
import type { ExecutorDetail, JoinToken } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { Blank } from '../../ui/States'
import { RelativeTime } from '../../ui/TimeText'
import { useDanger } from '../../ui/useDanger'
import { later } from '../../ui/later'

const CreateToken = later(() => import('./CreateToken'))

export function JoinTokens({ executor }: { executor: ExecutorDetail }) {
  const { t } = useTranslation()
  const danger = useDanger()
  const [creating, setCreating] = useState(false)
  const tokens = useQuery(joiningQueries.joinTokens(executor.id))
  const refresh = () => void queryClient.invalidateQueries({ queryKey: joiningQueries.joinTokens(executor.id).queryKey })

  const revoke = (token: JoinToken) =>
    danger({
      title: t('tokens.revokeTitle'),
      content: t('tokens.revokeHelp'),
      action: t('tokens.revoke'),
      work: () => joiningApi.deleteJoinToken(executor.id, token.id),
      done: t('tokens.revoked'),
      after: refresh,
    })
  const columns: Column<JoinToken>[] = [
    { key: 'name', title: t('field.name'), kind: 'title', render: (one) => one.name || <span className="mono">{one.id}</span> },
    { key: 'prefix', title: t('keys.prefix'), render: (one) => <span className="mono">{one.prefix}…</span> },
    {
      key: 'uses',
      title: t('tokens.uses'),
      render: (one) => <span className="num">{one.maxUses ? t('tokens.usesOf', { n: one.uses, max: one.maxUses }) : one.uses}</span>,
    },
    { key: 'declareJobs', title: t('tokens.declareJobs'), render: (one) => (one.declareJobs ? '✓' : <span className="muted">{t('tokens.noJobs')}</span>) },
    { key: 'created', title: t('field.created'), render: (one) => <RelativeTime at={one.createdAt} /> },
    { key: 'expires', title: t('field.expires'), render: (one) => <RelativeTime at={one.expiresAt} fallback={t('tokens.forever')} /> },
    {
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (one) => (
        <ActionButton size="small" danger onClick={() => revoke(one)} aria-label={`${t('tokens.revoke')}: ${one.name || one.id}`}>
          {t('tokens.revoke')}
        </ActionButton>
      ),
    },
  ]
  return (
    <section className="card flush" aria-label={t('tokens.title')}>
      <div className="card-head">
        <div>
          <h2>{t('tokens.title')}</h2>
          <p className="muted small">{t('tokens.help')}</p>
        </div>
        <ActionButton icon={<PlusOutlined />} onClick={() => setCreating(true)}>
          {t('tokens.create')}
        </ActionButton>
      </div>
      <ResourceTable
        label={t('tokens.title')}
        columns={columns}
        rows={tokens.data?.items}
        rowKey={(one) => one.id}
        error={tokens.error}
        onRetry={() => void tokens.refetch()}
        empty={<Blank title={t('tokens.empty')} help={t('tokens.emptyHelp')} />}
      />
      {creating && (
        <CreateToken
          executor={executor}
          onClose={() => {
            setCreating(false)
            refresh()
          }}
        />
      )}
    </section>
  )
}
