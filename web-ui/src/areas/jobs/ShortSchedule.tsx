import { useTranslation } from 'react-i18next'
import type { Schedule } from '../../api/types'
import { shortSchedule, zoneCity } from './shortSchedule'
import { useLang } from '../../ui/hooks'

/** A schedule in one line; the server's sentence and the zone on hover. */
export function ShortSchedule({ schedule }: { schedule: Schedule }) {
  const { t } = useTranslation()
  const lang = useLang()
  const short = shortSchedule(schedule, t, lang)
  const whole = [schedule.expr, schedule.text?.[lang], schedule.zone].filter(Boolean).join(' · ')
  return (
    <span className={`clip${short ? '' : ' mono'}${schedule.kind === 'none' ? ' muted' : ''}`} title={schedule.kind === 'none' ? undefined : whole}>
      {short ?? [schedule.expr, schedule.expr && zoneCity(schedule.zone)].filter(Boolean).join(' ')}
    </span>
  )
}
