import { useTranslation } from 'react-i18next'
import { Tabs } from '../../ui/Tabs'

export function PeopleTabs() {
  const { t } = useTranslation()
  return (
    <Tabs
      label={t('nav.people')}
      tabs={[
        { to: '/settings/people/users', text: t('nav.users') },
        { to: '/settings/people/api-keys', text: t('nav.apiKeys') },
      ]}
    />
  )
}
