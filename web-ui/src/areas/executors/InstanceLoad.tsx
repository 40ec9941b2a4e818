import { useTranslation } from 'react-i18next'
import type { Instance } from '../../api/types'

/** How many slots of an instance are taken. */
export function Load({ instance }: { instance: Instance }) {
  const { t } = useTranslation()
  const share = instance.slots > 0 ? Math.min(100, (instance.running / instance.slots) * 100) : 0
  return (
    <span className="row tight" style={{ flexWrap: 'nowrap' }} title={t('executors.loadText', { running: instance.running, slots: instance.slots })}>
      <span className="meter" aria-hidden="true">
        <span style={{ width: `${share}%` }} />
      </span>
      <span className="num nowrap">
        {instance.running}/{instance.slots}
      </span>
    </span>
  )
}
