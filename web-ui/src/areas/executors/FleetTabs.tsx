import { useTranslation } from 'react-i18next'
import { Tabs } from '../../ui/Tabs'

export function FleetTabs() {
  const { t } = useTranslation()
  return (
    <Tabs
      label={t('executors.title')}
      tabs={[
        { to: '/executors', text: t('executors.title'), exact: true },
        { to: '/executors/instances', text: t('executors.allInstances') },
      ]}
    />
  )
}
