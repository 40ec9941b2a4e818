// What whoever operates jobs does with an incident.
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { alertApi, refreshAlerts } from './alerts'
import type { Incident } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { useCan, useShowError } from '../../ui/hooks'
import { later } from '../../ui/later'
import { message } from '../../ui/notices'
import { useConfirm } from '../../ui/useConfirm'

const SilenceDialog = later(() => import('./SilenceDialog'))

export function IncidentActions({ incident, name, compact }: { incident: Incident; name: string; compact?: boolean }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const confirm = useConfirm()
  const [silencing, setSilencing] = useState(false)
  if (!useCan('operator') || incident.state === 'resolved') return null
  const size = compact ? 'small' : 'middle'
  const work = async (change: (id: string) => Promise<unknown>, done: string) => {
    try {
      await change(incident.id)
      message.success(done)
    } catch (err) {
      showError(err)
    }
    refreshAlerts()
  }
  const resolve = () =>
    confirm({
      title: t('alerts.resolveTitle'),
      content: t('alerts.resolveHelp'),
      okText: t('alerts.resolve'),
      cancelText: t('action.cancel'),
      onOk: () => work(alertApi.resolve, t('alerts.resolved')),
    })
  return (
    <span className="row tight">
      {incident.state === 'open' && (
        <ActionButton size={size} onClick={() => void work(alertApi.acknowledge, t('alerts.acknowledged'))} aria-label={`${t('alerts.acknowledge')}: ${name}`}>
          {t('alerts.acknowledge')}
        </ActionButton>
      )}
      <ActionButton size={size} onClick={() => setSilencing(true)} aria-label={`${t('alerts.silence.this')}: ${name}`}>
        {t('alerts.silence.this')}
      </ActionButton>
      {!compact && <ActionButton onClick={resolve}>{t('alerts.resolve')}</ActionButton>}
      {silencing && <SilenceDialog incident={incident} onClose={() => setSilencing(false)} />}
    </span>
  )
}
