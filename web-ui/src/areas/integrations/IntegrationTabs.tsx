import { useTranslation } from 'react-i18next'
import { Tabs } from '../../ui/Tabs'

export function IntegrationTabs() {
  const { t } = useTranslation()
  return (
    <Tabs
      label={t('nav.integrations')}
      tabs={[
        { to: '/settings/integrations/connections', text: t('nav.connections') },
        { to: '/settings/integrations/scripts', text: t('nav.scripts') },
      ]}
    />
  )
}
