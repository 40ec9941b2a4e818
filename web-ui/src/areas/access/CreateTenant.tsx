import { useTranslation } from 'react-i18next'
import { accessApi } from './access'
import type { Tenant } from '../../api/types'
import { NameDialog } from './NameDialog'

export default function CreateTenant({ onMade, onClose }: { onMade: (tenant: Tenant) => void; onClose: () => void }) {
  const { t } = useTranslation()
  return <NameDialog title={t('tenants.create')} action={t('action.create')} work={async (name) => onMade(await accessApi.createTenant({ name }))} onClose={onClose} />
}
