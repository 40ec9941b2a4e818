import { Button } from 'antd'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import type { RemovedInstance } from '../../api/types'
import { Dialog } from '../../ui/Dialog'
import { RelativeTime } from '../../ui/TimeText'

export default function RemovedDialog({ removed, onClose }: { removed: RemovedInstance; onClose: () => void }) {
  const { t } = useTranslation()
  return (
    <Dialog title={t('executors.removed', { name: removed.instance.name })} footer={<Button onClick={onClose}>{t('action.close')}</Button>} onCancel={onClose}>
      <p>
        {t('executors.removedRuns')} <RelativeTime at={removed.leaseUntil} />
      </p>
      <ul className="plain-list">
        {removed.runs.map((one) => (
          <li key={one.id}>
            <Link to="/runs/$runId" params={{ runId: one.id }} onClick={onClose}>
              {one.jobName} <span className="mono small">{one.id}</span>
            </Link>{' '}
            {t(`executors.fate.${one.then}`)}
          </li>
        ))}
      </ul>
    </Dialog>
  )
}
