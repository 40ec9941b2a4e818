import { useTranslation } from 'react-i18next'
import { accessApi } from './access'
import { api } from '../../api/endpoints'
import type { Tenant } from '../../api/types'
import { message } from '../../ui/notices'
import { NameDialog } from './NameDialog'

export default function RenameTenant({ tenant, current, onClose }: { tenant: Tenant; current: boolean; onClose: () => void }) {
  const { t } = useTranslation()
  const work = async (name: string) => {
    await accessApi.renameTenant(tenant, name)
    message.success(t('tenants.renamed', { name }))
    // The session knows its tenant by name, and every page shows it.
    if (current) await api.switchTenant(tenant.id)
  }
  return <NameDialog title={t('tenants.renameTitle', { name: tenant.name })} action={t('tenants.rename')} initial={tenant.name} work={work} onClose={onClose} />
}
