import { Alert, Button } from 'antd'
import { useTranslation } from 'react-i18next'
import type { ChannelTestResult } from '../../api/types'
import { Dialog } from '../../ui/Dialog'
import { Rendered } from './Rendered'

/** What a receiver answered to a test. */
export default function TestResult({ name, result, onClose }: { name: string; result: ChannelTestResult; onClose: () => void }) {
  const { t } = useTranslation()
  return (
    <Dialog
      title={t('alerts.channels.testOf', { name })}
      onCancel={onClose}
      footer={
        <Button onClick={onClose}>{t('action.close')}</Button>
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
  )
}
