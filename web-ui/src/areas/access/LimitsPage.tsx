// How many runs go on at once: of the tenant, and of each executor.
import { useQuery } from '../../api/useQuery'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { limitQueries } from '../executors/limits'
import { queries } from '../../api/queries'
import { useCan, useSession } from '../../ui/hooks'
import { LimitButton, Running, Waiting } from '../executors/Limits'
import { Page } from '../../ui/Page'
import { QuotaTable } from './Quotas'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { Blank } from '../../ui/States'
import { limitRows, type LimitRow } from '../executors/limitWords'

const EXECUTORS = 200

export function LimitsPage() {
  const { t } = useTranslation()
  const session = useSession()
  const canEdit = useCan('editor')
  const platform = session?.user.platformAdmin ?? false
  const limits = useQuery(limitQueries.limits())
  const executors = useQuery(queries.executors({ limit: EXECUTORS }))
  const rows = session && limits.data && executors.data ? limitRows(limits.data.items, session.tenant, executors.data.items) : undefined
  const columns: Column<LimitRow>[] = [
    {
      key: 'subject',
      title: t('limits.subject'),
      kind: 'title',
      render: (one) =>
        one.kind === 'tenant' ? (
          <span>
            <strong>{t('limits.tenant')}</strong> <span className="muted">{one.subject.name}</span>
          </span>
        ) : (
          <Link to="/executors/$executorId" params={{ executorId: one.subject.id }}>
            <strong>{one.subject.name}</strong>
          </Link>
        ),
    },
    {
      key: 'max',
      title: t('limits.max'),
      align: 'right',
      render: (one) => (one.maxRunning > 0 ? <span className="num">{one.maxRunning}</span> : <span className="muted">{t('limits.none')}</span>),
    },
    { key: 'running', title: t('limits.running'), render: (one) => <Running row={one} /> },
    { key: 'waiting', title: t('limits.waiting'), render: (one) => <Waiting row={one} /> },
    {
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (one) =>
        one.kind === 'executor' ? (
          canEdit && <LimitButton limited={one} />
        ) : platform ? (
          <LimitButton limited={one} />
        ) : (
          canEdit && <span className="muted small">{t('limits.platformOnly')}</span>
        ),
    },
  ]
  return (
    <Page title={t('limits.title')} help={t('limits.help')}>
      <div className="card flush">
        <ResourceTable
          label={t('limits.title')}
          columns={columns}
          rows={rows}
          rowKey={(one) => `${one.kind}-${one.subject.id}`}
          error={limits.error ?? executors.error}
          onRetry={() => {
            void limits.refetch()
            void executors.refetch()
          }}
          updatedAt={limits.dataUpdatedAt}
          empty={<Blank title={t('limits.title')} help={t('limits.help')} />}
        />
      </div>
      <h2 className="above-5">{t('quotas.own')}</h2>
      <p className="muted below-3">
        {t('quotas.help')} {!platform && t('quotas.platformOnly')}
      </p>
      {session && <QuotaTable tenant={session.tenant} platform={platform} />}
    </Page>
  )
}
