import { useTranslation } from 'react-i18next'
import type { Fire } from '../api/types'
import { formatInstant, localZone, zoneOffset } from '../lib/time'
import { RelativeTime } from './TimeText'

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
  const sameZone = first !== undefined && zoneOffset(first.at, zone) === zoneOffset(first.at, localZone)
  return (
    <>
      <p className="muted small" style={{ marginBottom: 6 }}>
        {t('jobs.preview.jobZone')}: {zone}
        {!sameZone && ` · ${t('jobs.preview.mine')}: ${localZone}`}
      </p>
      <ol className="fires">
        {fires.map((fire) => (
          <li key={fire.at}>
            <span>
              <time className="mono nowrap" dateTime={fire.at}>
                {formatInstant(fire.at, zone)}
              </time>
              {!sameZone && <span className="mono muted nowrap"> · {formatInstant(fire.at).slice(5)}</span>}
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
