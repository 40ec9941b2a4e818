import { PlusOutlined } from '@ant-design/icons'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { later } from '../../ui/later'
import { accessQueries } from './access'
import { api } from '../../api/endpoints'
import { queryClient } from '../../api/queries'
import type { Tenant } from '../../api/types'
import { useQuery } from '../../api/useQuery'
import { ActionButton } from '../../ui/ActionButton'
import { Dialog } from '../../ui/Dialog'
import { useSession, useShowError } from '../../ui/hooks'
import { Page } from '../../ui/Page'
import { QuotasButton } from './Quotas'
import { Pager, ResourceTable, type Column } from '../../ui/ResourceTable'
import { TenantStateChip } from '../../ui/StateChip'
import { Blank } from '../../ui/States'
import { TenantActions } from './TenantActions'
import { RelativeTime } from '../../ui/TimeText'

/** For platform administrators: the tenants of this installation. */
const CreateTenant = later(() => import('./CreateTenant'))

export function TenantsPage() {
  const { t } = useTranslation()
  const showError = useShowError()
  const navigate = useNavigate()
  const current = useSession()?.tenant.id
  const { cursor } = useSearch({ from: '/app/settings/tenants' })
  const tenants = useQuery(accessQueries.tenants(cursor))
  const [creating, setCreating] = useState(false)
  const [made, setMade] = useState<Tenant>()
  const switchTo = async (tenant: Tenant, then: '/settings/tenants' | '/settings/people/users') => {
    try {
      await api.switchTenant(tenant.id)
      await navigate({ to: then })
      await queryClient.resetQueries()
    } catch (err) {
      showError(err)
    }
  }
  const columns: Column<Tenant>[] = [
    {
      key: 'name',
      title: t('field.name'),
      kind: 'title',
      render: (one) => (
        <div>
          <span className="row tight">
            <strong className="any-wrap">{one.name}</strong> {one.id === current && <span className="label-chip">{t('tenants.current')}</span>}
          </span>
          <span className="muted small mono">{one.id}</span>
        </div>
      ),
    },
    { key: 'state', title: t('field.state'), render: (one) => <State tenant={one} /> },
    { key: 'created', title: t('field.created'), render: (one) => <RelativeTime at={one.createdAt} /> },
    {
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (one) => (
        <span className="row tight">
          <QuotasButton tenant={one} />
          {one.id !== current && (one.state === 'enabled' || one.state === 'disabled') && (
            <ActionButton size="small" onClick={() => void switchTo(one, '/settings/tenants')} aria-label={`${t('tenants.switchTo')}: ${one.name}`}>
              {t('tenants.switchTo')}
            </ActionButton>
          )}
          <TenantActions tenant={one} current={one.id === current} />
        </span>
      ),
    },
  ]
  return (
    <Page
      title={t('tenants.title')}
      help={t('tenants.help')}
      actions={
        <ActionButton type="primary" icon={<PlusOutlined />} onClick={() => setCreating(true)}>
          {t('tenants.create')}
        </ActionButton>
      }
    >
      <div className="card flush">
        <ResourceTable
          label={t('tenants.title')}
          columns={columns}
          rows={tenants.data?.items}
          rowKey={(one) => one.id}
          error={tenants.error}
          onRetry={() => void tenants.refetch()}
          empty={<Blank title={t('tenants.title')} />}
          pager={<Pager cursor={cursor} nextCursor={tenants.data?.nextCursor} onGo={(next) => void navigate({ to: '/settings/tenants', search: next ? { cursor: next } : {} })} />}
        />
      </div>
      {creating && <CreateTenant onMade={setMade} onClose={() => setCreating(false)} />}
      {made && (
        <Dialog
          title={t('tenants.firstTitle', { name: made.name })}
          okText={t('tenants.first')}
          cancelText={t('tenants.later')}
          onOk={() => void switchTo(made, '/settings/people/users')}
          onCancel={() => setMade(undefined)}
        >
          <p>{t('tenants.firstHelp')}</p>
        </Dialog>
      )}
    </Page>
  )
}

/** With what belongs to the state: why, where, or until when it can be restored. */
function State({ tenant }: { tenant: Tenant }) {
  const { t } = useTranslation()
  return (
    <div>
      <TenantStateChip state={tenant.state} />
      <div className="muted small any-wrap">
        {tenant.deleteAt ? (
          <>
            {t('tenants.goes')} <RelativeTime at={tenant.deleteAt} />
          </>
        ) : tenant.cell ? (
          t('tenants.cell', { name: tenant.cell })
        ) : (
          tenant.note
        )}
      </div>
    </div>
  )
}
