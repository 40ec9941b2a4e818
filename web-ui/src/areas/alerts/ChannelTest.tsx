// Really sends a message, and shows what the receiver answered.
import { Alert, Button } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { alertApi, refreshAlerts } from './alerts'
import type { AlertChannel, ChannelTestResult } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { Dialog } from '../../ui/Dialog'
import { useShowError } from '../../ui/hooks'
import { Rendered } from './Rendered'

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
      {result && (
        <Dialog
          title={t('alerts.channels.testOf', { name: channel.name })}
          onCancel={() => setResult(undefined)}
          footer={
            <Button onClick={() => setResult(undefined)}>{t('action.close')}</Button>
          }
        >
          <div className="stack">
            {result.delivered ? (
              <Alert type="success" showIcon title={t('alerts.channels.testDelivered', { ms: result.durationMs })} />
            ) : (
              <Alert
                type="error"
                showIcon
                title={t('alerts.channels.testFailed')}
                description={
                  <>
                    <p className="any-wrap">{result.message}</p>
                    <p>{t(result.permanent ? 'alerts.channels.testPermanent' : 'alerts.channels.testAgain')}</p>
                  </>
                }
              />
            )}
            <details open={!result.delivered}>
              <summary>{t('alerts.channels.sent')}</summary>
              <Rendered message={result.rendered} />
            </details>
          </div>
        </Dialog>
      )}
    </>
  )
}
