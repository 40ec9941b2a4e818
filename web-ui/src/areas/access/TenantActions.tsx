// Making, renaming, disabling and deleting a tenant, for platform administrators.
import { useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { accessApi, refreshTenants } from './access'
import type { Tenant } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { useShowError } from '../../ui/hooks'
import { message } from '../../ui/notices'
import { useDanger } from '../../ui/useDanger'
import { TextField } from '../../ui/TextField'
import { later } from '../../ui/later'

const RenameTenant = later(() => import('./RenameTenant'))

const DeleteTenant = later(() => import('./DeleteTenant'))

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
          <TextField label={t('field.note')} maxLength={512} onChange={(text) => (note.current = text)} />
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
