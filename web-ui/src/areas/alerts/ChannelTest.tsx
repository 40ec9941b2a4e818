// Really sends a message, and shows what the receiver answered.
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { alertApi, refreshAlerts } from './alerts'
import type { AlertChannel, ChannelTestResult } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { useShowError } from '../../ui/hooks'
import { later } from '../../ui/later'

const TestResult = later(() => import('./TestResult'))

export function ChannelTest({ channel, compact }: { channel: AlertChannel; compact?: boolean }) {
  const { t } = useTranslation()
  const showError = useShowError()
  const [busy, setBusy] = useState(false)
  const [result, setResult] = useState<ChannelTestResult>()
  const send = async () => {
    setBusy(true)
    try {
      setResult(await alertApi.testChannel(channel.id))
      refreshAlerts()
    } catch (err) {
      showError(err)
    }
    setBusy(false)
  }
  return (
    <>
      <ActionButton size={compact ? 'small' : 'middle'} loading={busy} onClick={() => void send()} aria-label={compact ? `${t('alerts.channels.test')}: ${channel.name}` : undefined}>
        {t('alerts.channels.test')}
      </ActionButton>
      {result && <TestResult name={channel.name} result={result} onClose={() => setResult(undefined)} />}
    </>
  )
}
