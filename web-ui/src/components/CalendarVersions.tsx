// The versions of a calendar: who, when, and what each one changed.
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { queries } from '../api/queries'
import type { Calendar } from '../api/types'
import { diffCalendars, type CalendarChange } from '../lib/calendar'
import { localZone } from '../lib/time'
import { ErrorState } from './States'
import { AbsoluteTime } from './TimeText'

const SHOWN = 12

export function CalendarVersions({ calendar }: { calendar: Calendar }) {
  const { t } = useTranslation()
  const versions = useQuery(queries.calendarVersions(calendar.id, calendar.version))
  if (versions.error && !versions.data) return <ErrorState error={versions.error} onRetry={() => void versions.refetch()} />
  if (!versions.data) return <span className="skeleton" style={{ height: 80, width: '100%' }} />
  const { items, nextCursor } = versions.data
  // What the oldest one on the list changed cannot be said when there are more.
  const shown = nextCursor === null ? items : items.slice(0, -1)
  return (
    <section className="card flush" aria-label={t('calendars.versions')}>
      <div className="card-head">
        <h2>{t('calendars.versions')}</h2>
      </div>
      {shown.map((item, i) => {
        const older = items[i + 1]
        return (
          <div key={item.version} className="version">
            <div className="card-head">
              <h3>{t('calendars.versionTitle', { n: item.version })}</h3>
              <span className="muted">
                {t('calendars.versionBy', { who: item.createdBy })} · <AbsoluteTime at={item.createdAt} />
              </span>
            </div>
            {older ? (
              <Changes changes={diffCalendars(older.spec, item.spec, item.spec.zone || localZone)} />
            ) : (
              <p className="muted changes">{t('calendars.versionFirst')}</p>
            )}
          </div>
        )
      })}
    </section>
  )
}

function Changes({ changes }: { changes: CalendarChange[] }) {
  const { t } = useTranslation()
  if (changes.length === 0) return <p className="muted changes">{t('calendars.versionSame')}</p>
  return (
    <ul className="changes">
      {changes.slice(0, SHOWN).map((one) => (
        <li key={`${one.part}-${one.kind}-${one.before}-${one.after}`}>
          <Change change={one} />
        </li>
      ))}
      {changes.length > SHOWN && <li className="muted">{t('calendars.moreChanges', { count: changes.length - SHOWN })}</li>}
    </ul>
  )
}

function Change({ change }: { change: CalendarChange }) {
  const { t } = useTranslation()
  const field = t(`calendars.${change.part}`)
  if (change.kind === 'changed') return <>{t('calendars.changed', { field, before: change.before || '—', after: change.after || '—' })}</>
  const added = change.kind === 'added'
  return (
    <>
      <span className={added ? 'st-success' : 'st-failed'}>
        {added ? '+' : '−'} {t(`calendars.${change.kind}`)}
      </span>{' '}
      <span className="muted">{field}</span> <span className="num">{added ? change.after : change.before}</span>
    </>
  )
}
