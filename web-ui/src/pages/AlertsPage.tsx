// What has happened, who is told, by which means, and what is held back.
import { Link, Outlet } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { Page } from '../components/Page'

export function AlertsPage() {
  const { t } = useTranslation()
  return (
    <Page title={t('alerts.title')} sub={t('alerts.help')}>
      <nav className="tabs" aria-label={t('alerts.parts')}>
        <Link to="/alerts" activeOptions={{ exact: true, includeSearch: false }}>
          {t('alerts.incidents')}
        </Link>
        <Link to="/alerts/rules">{t('alerts.rules.tab')}</Link>
        <Link to="/alerts/channels">{t('alerts.channels.tab')}</Link>
        <Link to="/alerts/silences" activeOptions={{ includeSearch: false }}>
          {t('alerts.silences')}
        </Link>
        <Link to="/alerts/deliveries" activeOptions={{ includeSearch: false }}>
          {t('alerts.deliveries')}
        </Link>
      </nav>
      <Outlet />
    </Page>
  )
}
