// Making, renaming, disabling and deleting a tenant, for platform administrators.
import { useQuery } from '../../api/useQuery'
import { Form, Input, Select } from 'antd'
import { useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { accessApi, refreshTenants } from './access'
import { api } from '../../api/endpoints'
import { limitQueries } from '../executors/limits'
import { isApiError } from '../../api/problem'
import type { Quota, Tenant } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { complainAt } from '../../ui/complain'
import { Dialog } from '../../ui/Dialog'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { useDanger } from '../../ui/useDanger'

/** As domain.TenantNames of the server. */
const NAME = /^[a-z]([a-z0-9-]{0,62}[a-z0-9])?$/
const GRACE_DAYS = [0, 1, 7, 30, 90]
/** Those of the quotas that count what is there. */
const COUNTED: Quota['kind'][] = ['jobs', 'executors', 'timers', 'users', 'api_keys']

export function TenantActions({ tenant, current }: { tenant: Tenant; current: boolean }) {
  const { t } = useTranslation()
  const danger = useDanger()
  const showError = useShowError()
  const [open, setOpen] = useState<'rename' | 'delete'>()
  const note = useRef('')
  const { name, state } = tenant
  const button = (text: string, onClick: () => void, dangerous = false) => (
    <ActionButton size="small" danger={dangerous} onClick={onClick} aria-label={`${text}: ${name}`}>
      {text}
    </ActionButton>
  )
  const act = async (work: Promise<unknown>, done: string) => {
    try {
      await work
      message.success(done)
    } catch (err) {
      showError(err)
    }
    refreshTenants()
  }
  const disable = () => {
    note.current = ''
    danger({
      title: t('tenants.disableTitle', { name }),
      content: (
        <div className="stack">
          <p>{t('tenants.disableHelp')}</p>
          <Input aria-label={t('field.note')} placeholder={t('field.note')} maxLength={512} onChange={(event) => (note.current = event.target.value)} />
        </div>
      ),
      action: t('tenants.disable'),
      work: () => accessApi.disableTenant(tenant, note.current.trim()),
      done: t('tenants.disabled', { name }),
      after: refreshTenants,
    })
  }
  return (
    <>
      {(state === 'enabled' || state === 'disabled') && button(t('tenants.rename'), () => setOpen('rename'))}
      {/* Nobody shuts the tenant that they work in. */}
      {state === 'enabled' && !current && button(t('tenants.disable'), disable)}
      {state === 'disabled' && button(t('tenants.enable'), () => void act(accessApi.enableTenant(tenant), t('tenants.enabled', { name })))}
      {state === 'disabled' && !current && button(t('action.delete'), () => setOpen('delete'), true)}
      {state === 'deleted' && button(t('tenants.restore'), () => void act(accessApi.restoreTenant(tenant), t('tenants.restored', { name })))}
      {open === 'rename' && <RenameTenant tenant={tenant} current={current} onClose={() => setOpen(undefined)} />}
      {open === 'delete' && <DeleteTenant tenant={tenant} onClose={() => setOpen(undefined)} />}
    </>
  )
}

interface NameProps {
  title: string
  action: string
  initial?: string
  work: (name: string) => Promise<unknown>
  onClose: () => void
}

function NameDialog({ title, action, initial, work, onClose }: NameProps) {
  const { t } = useTranslation()
  const showError = useShowError()
  const [form] = Form.useForm<{ name: string }>()
  const [busy, setBusy] = useState(false)
  const submit = async ({ name }: { name: string }) => {
    setBusy(true)
    try {
      await work(name)
      onClose()
    } catch (err) {
      if (isApiError(err, 'conflict')) form.setFields([{ name: 'name', errors: [t('tenants.nameTaken')] }])
      else if (!complainAt(form, err)) showError(err)
      setBusy(false)
    }
    refreshTenants()
  }
  return (
    <Dialog title={title} okText={action} cancelText={t('action.cancel')} okButtonProps={{ loading: busy }} onOk={form.submit} onCancel={onClose}>
      <Form form={form} layout="vertical" initialValues={{ name: initial }} onFinish={(fields) => void submit(fields)}>
        <Form.Item
          name="name"
          label={t('field.name')}
          extra={t('tenants.nameHelp')}
          validateTrigger="onSubmit"
          rules={[{ required: true, message: t('field.required') }, { pattern: NAME, message: t('tenants.nameRule') }]}
        >
          <Input maxLength={64} autoComplete="off" autoCapitalize="none" spellCheck={false} />
        </Form.Item>
      </Form>
    </Dialog>
  )
}

export function CreateTenant({ onMade, onClose }: { onMade: (tenant: Tenant) => void; onClose: () => void }) {
  const { t } = useTranslation()
  return <NameDialog title={t('tenants.create')} action={t('action.create')} work={async (name) => onMade(await accessApi.createTenant({ name }))} onClose={onClose} />
}

function RenameTenant({ tenant, current, onClose }: { tenant: Tenant; current: boolean; onClose: () => void }) {
  const { t } = useTranslation()
  const work = async (name: string) => {
    await accessApi.renameTenant(tenant, name)
    message.success(t('tenants.renamed', { name }))
    // The session knows its tenant by name, and every page shows it.
    if (current) await api.switchTenant(tenant.id)
  }
  return <NameDialog title={t('tenants.renameTitle', { name: tenant.name })} action={t('tenants.rename')} initial={tenant.name} work={work} onClose={onClose} />
}

function DeleteTenant({ tenant, onClose }: { tenant: Tenant; onClose: () => void }) {
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
