import { useTranslation } from 'react-i18next'
import { isFinal } from '../../api/queries'
import type { Timer } from '../../api/types'
import { serverNow } from '../../lib/connection'
import { AbsoluteTime } from '../../ui/TimeText'

/** It ended before its handler was to run. A countdown to its time would promise a run. */
export const neverFired = ({ state, fireAt }: Timer) => state === 'cancelled' || state === 'missed' || (isFinal(state) && Date.parse(fireAt) > serverNow())

export function NotFired({ at }: { at: string }) {
  const { t } = useTranslation()
  return (
    <span className="muted">
      {t('timers.wasToFire')}: <AbsoluteTime at={at} />
    </span>
  )
}
