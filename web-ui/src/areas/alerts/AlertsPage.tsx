// The causes of alerts, and the settings of notifications: rules, channels, silences, deliveries.
import { Link, Outlet } from '@tanstack/react-router'
import { Alert } from 'antd'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { alertQueries } from './alerts'
import { useQuery } from '../../api/useQuery'
import { useNarrow } from '../../ui/hooks'
import { Page } from '../../ui/Page'
import { Tabs } from '../../ui/Tabs'
import { IncidentsTab } from './IncidentsPage'

export function AlertsPage() {
  const { t } = useTranslation()
  return (
    <Alerting title={t('alerts.title')} help={t('alerts.help')}>
      <IncidentsTab />
    </Alerting>
  )
}

export function NotificationsPage() {
  const { t } = useTranslation()
  const tabs = (
    <Tabs
      label={t('alerts.parts')}
      tabs={[
        { to: '/settings/notifications/rules', text: t('alerts.rules.tab') },
        { to: '/settings/notifications/channels', text: t('alerts.channels.tab') },
        { to: '/settings/notifications/silences', text: t('alerts.silences') },
        { to: '/settings/notifications/deliveries', text: t('alerts.deliveries') },
      ]}
    />
  )
  return (
    <Alerting title={t('alerts.notifications.title')} help={t('alerts.notifications.help')} tabs={tabs}>
      <Outlet />
    </Alerting>
  )
}

/** Both say when messages reach nobody. */
function Alerting({ title, help, tabs, children }: { title: string; help: string; tabs?: ReactNode; children: ReactNode }) {
  const { t } = useTranslation()
  const narrow = useNarrow()
  const nobody = useQuery(alertQueries.settings()).data?.reachesNobody ?? false
  return (
    <Page title={title} help={help} tabs={tabs}>
      {nobody && (
        <Alert
          type="warning"
          showIcon
          className="page-alert"
          title={
            narrow ? (
              <Link to="/settings/notifications/rules">{t('alerts.reachesNobodyShort')}</Link>
            ) : (
              <>
                {t('alerts.reachesNobody')} <Link to="/settings/notifications/rules">{t('alerts.rules.defaults')}</Link>
              </>
            )
          }
        />
      )}
      {children}
    </Page>
  )
}
