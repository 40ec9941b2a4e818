import { useQuery } from '../../api/useQuery'
import { Form, Input, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { accessApi, refreshTenants } from './access'
import { limitQueries } from '../executors/limits'
import type { Quota, Tenant } from '../../api/types'
import { Dialog } from '../../ui/Dialog'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'

const GRACE_DAYS = [0, 1, 7, 30, 90]

/** Those of the quotas that count what is there. */
const COUNTED: Quota['kind'][] = ['jobs', 'executors', 'timers', 'users', 'api_keys']

export default function DeleteTenant({ tenant, onClose }: { tenant: Tenant; onClose: () => void }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const quotas = useQuery(limitQueries.quotas(tenant.id))
  const [form] = Form.useForm<{ days: number; name: string }>()
  const [busy, setBusy] = useState(false)
  const { name } = tenant
  const submit = async ({ days }: { days: number }) => {
    setBusy(true)
    try {
      await accessApi.deleteTenant(tenant, name, `${days * 24}h`)
      message.success(t('tenants.deleted', { name }))
      onClose()
    } catch (err) {
      showError(err)
      setBusy(false)
    }
    refreshTenants()
  }
  return (
    <Dialog title={t('tenants.deleteTitle', { name })} okText={t('action.delete')} cancelText={t('action.cancel')} okButtonProps={{ danger: true, loading: busy }} onOk={form.submit} onCancel={onClose}>
      <div className="stack">
        <p>{t('tenants.deleteHelp')}</p>
        <p className="row tight">
          {quotas.data?.items
            .filter((one) => COUNTED.includes(one.kind))
            .map((one) => (
              <span key={one.kind} className="label-chip">
                {t(`quotas.kind_${one.kind}`)}: <span className="num">{one.used.toLocaleString()}</span>
              </span>
            ))}
        </p>
        <Form form={form} layout="vertical" initialValues={{ days: 7, name: '' }} onFinish={(fields) => void submit(fields)}>
          <Form.Item name="days" label={t('tenants.grace')}>
            <Select options={GRACE_DAYS.map((count) => ({ value: count, label: count > 0 ? t('tenants.graceDays', { count }) : t('tenants.graceNone') }))} />
          </Form.Item>
          <Form.Item name="name" label={t('tenants.confirm')} validateTrigger="onSubmit" rules={[{ required: true, message: t('tenants.confirmRule', { name }) }, { enum: [name], type: 'enum', message: t('tenants.confirmRule', { name }) }]}>
            <Input autoComplete="off" autoCapitalize="none" spellCheck={false} placeholder={name} />
          </Form.Item>
        </Form>
      </div>
    </Dialog>
  )
}
