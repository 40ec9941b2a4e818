import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../api/useQuery'
import { App, Form, Input } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../api/endpoints'
import { queries, queryClient } from '../api/queries'
import type { Tenant } from '../api/types'
import { ActionButton } from '../components/ActionButton'
import { Dialog } from '../components/Dialog'
import { useSession, useShowError } from '../components/hooks'
import { Page } from '../components/Page'
import { QuotasButton } from '../components/Quotas'
import { ResourceTable, type Column } from '../components/ResourceTable'
import { Blank } from '../components/States'
import { RelativeTime } from '../components/TimeText'

/** For platform administrators: the tenants of this installation. */
export function TenantsPage() {
  const { t } = useTranslation()
  const showError = useShowError()
  const current = useSession()?.tenant.id
  const tenants = useQuery(queries.tenants())
  const [creating, setCreating] = useState(false)
  const switchTo = async (tenant: Tenant) => {
    try {
      await api.switchTenant(tenant.id)
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
        <span className="row tight">
          <strong>{one.name}</strong> {one.id === current && <span className="label-chip">{t('tenants.current')}</span>}
        </span>
      ),
    },
    { key: 'id', title: t('field.id'), render: (one) => <span className="mono">{one.id}</span> },
    { key: 'created', title: t('field.created'), render: (one) => <RelativeTime at={one.createdAt} /> },
    {
      key: 'actions',
      title: t('field.actions'),
      kind: 'actions',
      render: (one) => (
        <span className="row tight">
          <QuotasButton tenant={one} />
          {one.id !== current && (
            <ActionButton size="small" onClick={() => void switchTo(one)} aria-label={`${t('tenants.switchTo')}: ${one.name}`}>
              {t('tenants.switchTo')}
            </ActionButton>
          )}
        </span>
      ),
    },
  ]
  return (
    <Page
      title={t('tenants.title')}
      sub={t('tenants.help')}
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
        />
      </div>
      {creating && <CreateTenant onClose={() => setCreating(false)} />}
    </Page>
  )
}

function CreateTenant({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation()
  const { message } = App.useApp()
  const showError = useShowError()
  const [form] = Form.useForm<{ name: string }>()
  const [busy, setBusy] = useState(false)
  const submit = async ({ name }: { name: string }) => {
    setBusy(true)
    try {
      const tenant = await api.createTenant({ name: name.trim() })
      message.success(t('tenants.created', { name: tenant.name }))
      for (const key of ['tenants', 'me']) void queryClient.invalidateQueries({ queryKey: [key] })
      onClose()
    } catch (err) {
      showError(err)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('tenants.create')} okText={t('action.create')} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={onClose}>
      <Form form={form} layout="vertical" onFinish={submit}>
        <Form.Item name="name" label={t('field.name')} rules={[{ required: true, whitespace: true, message: t('field.required') }]}>
          <Input maxLength={64} autoComplete="off" autoFocus />
        </Form.Item>
      </Form>
    </Dialog>
  )
}
