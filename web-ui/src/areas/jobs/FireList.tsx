import './jobs.css'
import { useTranslation } from 'react-i18next'
import type { Fire } from '../../api/types'
import { formatInstant, localZone, zoneOffset } from '../../lib/time'
import { excludedBy } from '../calendars/calendar'
import { RelativeTime } from '../../ui/TimeText'

/** The next fire times in the job's zone and, where it differs, in mine. */
export function FireList({ fires, neverFires, zone }: { fires: Fire[]; neverFires: boolean; zone: string }) {
  const { t } = useTranslation()
  if (neverFires || fires.length === 0) {
    return (
      <p className="st-timeout" role="status">
        {t('jobs.preview.neverFires')}
      </p>
    )
  }
  const first = fires[0]
  const excluded = fires.filter((fire) => fire.exclusion).length
  const sameZone = first !== undefined && zoneOffset(first.at, zone) === zoneOffset(first.at, localZone)
  return (
    <>
      <p className="muted small below-1">
        {t('jobs.preview.jobZone')}: {zone}
        {!sameZone && ` · ${t('jobs.preview.mine')}: ${localZone}`}
      </p>
      {excluded > 0 && (
        <p className="muted small below-1">
          {t('calendars.excludedCount', { count: excluded })}
        </p>
      )}
      <ol className="fires">
        {fires.map((fire) => (
          <li key={fire.at} className={fire.exclusion ? 'taken-out' : undefined}>
            <span>
              <time className="mono nowrap" dateTime={fire.at}>
                {formatInstant(fire.at, zone)}
              </time>
              {!sameZone && <span className="mono muted nowrap"> · {formatInstant(fire.at).slice(5)}</span>}
              {fire.exclusion && <span className="st-skipped small"> · {t('calendars.excluded', { calendar: fire.exclusion.calendar.name, why: excludedBy(fire.exclusion, zone, t) })}</span>}
              {fire.note && <span className="st-timeout small"> · {t(`jobs.preview.${fire.note}`)}</span>}
            </span>
            <span className="muted small">
              <RelativeTime at={fire.at} zone={zone} />
            </span>
          </li>
        ))}
      </ol>
    </>
  )
}
