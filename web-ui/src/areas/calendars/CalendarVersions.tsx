// The versions of a calendar: who, when, and what each one changed.
import { useQuery } from '../../api/useQuery'
import { useTranslation } from 'react-i18next'
import { calendarQueries } from './calendars'
import type { Calendar, Weekday } from '../../api/types'
import { diffCalendars, type CalendarChange } from './calendar'
import { localZone } from '../../lib/time'
import { Version, Versions } from '../../ui/Versions'

const SHOWN = 12

export function CalendarVersions({ calendar }: { calendar: Calendar }) {
  const { t } = useTranslation()
  const versions = useQuery(calendarQueries.calendarVersions(calendar.id, calendar.version))
  return (
    <Versions title={t('calendars.versions')} list={versions}>
      {({ items, nextCursor }) =>
        // What the oldest one on the list changed cannot be said when there are more.
        (nextCursor === null ? items : items.slice(0, -1)).map((item, i) => {
          const older = items[i + 1]
          return (
            <Version key={item.version} title={t('calendars.versionTitle', { n: item.version })} who={item.createdBy} at={item.createdAt}>
              {older ? (
                <Changes changes={diffCalendars({ ...older.spec, name: older.name }, { ...item.spec, name: item.name }, item.spec.zone || localZone)} />
              ) : (
                <p className="muted changes">{t('calendars.versionFirst')}</p>
              )}
            </Version>
          )
        })
      }
    </Versions>
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
  if (change.kind === 'changed') {
    const say = (value: string) => (change.part === 'weekend' ? value.split(' ').map((day) => t(`calendars.weekdays.${day as Weekday}`)).join(' ') : value || '—')
    return <>{t('calendars.changed', { field, before: say(change.before), after: say(change.after) })}</>
  }
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
