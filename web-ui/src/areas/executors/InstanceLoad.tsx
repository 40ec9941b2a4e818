import { useTranslation } from 'react-i18next'
import type { Instance } from '../../api/types'
import { Meter } from '../../ui/Meter'

/** How many slots of an instance are taken. */
export function Load({ instance }: { instance: Instance }) {
  const { t } = useTranslation()
  const share = instance.slots > 0 ? Math.min(100, (instance.running / instance.slots) * 100) : 0
  return (
    <span className="row tight no-wrap" title={t('executors.loadText', { running: instance.running, count: instance.slots })}>
      <Meter share={share} />
      <span className="num nowrap">
        {instance.running}/{instance.slots}
      </span>
    </span>
  )
}
