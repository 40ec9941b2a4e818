// What has happened, who is told, by which means, and what is held back.
import { Link, Outlet } from '@tanstack/react-router'
import { Alert } from 'antd'
import { useTranslation } from 'react-i18next'
import { alertQueries } from './alerts'
import { useQuery } from '../../api/useQuery'
import { Page } from '../../ui/Page'

export function AlertsPage() {
  const { t } = useTranslation()
  const nobody = useQuery(alertQueries.settings()).data?.reachesNobody ?? false
  return (
    <Page title={t('alerts.title')} sub={t('alerts.help')}>
      {nobody && (
        <Alert
          type="warning"
          showIcon
          style={{ marginBottom: 12 }}
          title={
            <>
              {t('alerts.reachesNobody')} <Link to="/alerts/rules">{t('alerts.rules.defaults')}</Link>
            </>
          }
        />
      )}
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
