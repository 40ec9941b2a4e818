// One calendar: its days and windows, who uses it, and its versions.
import './calendars.css'
import { DeleteOutlined, EditOutlined, ImportOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { calendarApi, calendarQueries, refreshCalendars } from './calendars'
import { queryClient } from '../../api/queries'
import type { Blackout, Calendar, CalendarDay, Id } from '../../api/types'
import { ActionButton } from '../../ui/ActionButton'
import { ByWhom } from '../../ui/ByWhom'
import { CalendarVersions } from './CalendarVersions'
import { Changes } from '../../ui/Changes'
import { Fact } from '../../ui/Fact'
import { useCan } from '../../ui/hooks'
import { JobLinks } from '../../ui/JobLinks'
import { later } from '../../ui/later'
import { LinkButton } from '../../ui/LinkButton'
import { modal } from '../../ui/notices'
import { Page } from '../../ui/Page'
import { ErrorState, PageSkeleton } from '../../ui/States'
import { useDanger } from '../../ui/useDanger'
import { DEFAULT_WEEKEND, formatWall, rangesOf } from './calendar'
import { serverNow } from '../../lib/connection'
import { localZone } from '../../lib/time'

const CalendarImport = later(() => import('./CalendarImport'))

export function CalendarPage() {
  const { t } = useTranslation()
  const { calendarId } = useParams({ from: '/app/calendars/$calendarId' })
  const calendar = useQuery(calendarQueries.calendar(calendarId))
  const jobs = useQuery(calendarQueries.calendarJobs(calendarId))
  const canEdit = useCan('editor')
  if (calendar.error && !calendar.data) return <ErrorState error={calendar.error} onRetry={() => void calendar.refetch()} />
  if (!calendar.data) return <PageSkeleton />
  const { data } = calendar
  const { spec } = data
  return (
    <Page
      title={data.name}
      crumbs={<Link to="/calendars">{t('calendars.title')}</Link>}
      sub={spec.description}
      actions={canEdit && <Actions calendar={data} jobs={jobs.data?.items} />}
    >
      <div className="stack">
        <section className="card">
          <dl className="facts">
            <Fact label={t('calendars.zone')}>{spec.zone || t('calendars.zoneAny')}</Fact>
            <Fact label={t('calendars.weekend')}>{(spec.weekend ?? DEFAULT_WEEKEND).map((day) => t(`calendars.weekdays.${day}`)).join(' ')}</Fact>
            <Fact label={t('calendars.version')}>
              <span className="num">{data.version}</span>
            </Fact>
            <Fact label={t('field.updated')}>
              <ByWhom who={data.updatedBy} at={data.updatedAt} />
            </Fact>
          </dl>
        </section>
        <div className="grid-2">
          <div className="stack">
            <DaysCard title={t('calendars.holidays')} days={spec.holidays ?? []} />
            <DaysCard title={t('calendars.makeUpDays')} days={spec.makeUpDays ?? []} />
            <WindowsCard windows={spec.blackouts ?? []} zone={spec.zone || localZone} />
          </div>
          <JobLinks title={t('calendars.usedBy')} none={t('calendars.unused')} jobs={jobs} />
        </div>
        <CalendarVersions calendar={data} />
        <Changes kind="calendar" object={data.id} />
      </div>
    </Page>
  )
}

/** What is over stands folded: people ask for what comes. */
function Upcoming<T>({ items, isPast, render }: { items: T[]; isPast: (one: T) => boolean; render: (one: T) => ReactNode }) {
  const { t } = useTranslation()
  const past = items.filter(isPast)
  const coming = items.filter((one) => !isPast(one))
  if (items.length === 0) return <p className="muted">{t('calendars.noDays')}</p>
  return (
    <>
      {coming.length > 0 && <ul className="day-list">{coming.map(render)}</ul>}
      {past.length > 0 && (
        <details>
          <summary>{t('calendars.past', { count: past.length })}</summary>
          <ul className="day-list">{past.map(render)}</ul>
        </details>
      )}
    </>
  )
}

function DaysCard({ title, days }: { title: string; days: CalendarDay[] }) {
  const { t } = useTranslation()
  const today = new Date(serverNow()).toISOString().slice(0, 10)
  return (
    <section className="card">
      <div className="card-head">
        <h2>{title}</h2>
        <span className="muted">{t('calendars.days', { count: days.length })}</span>
      </div>
      <Upcoming
        items={rangesOf(days)}
        isPast={(one) => one.to < today}
        render={(one) => (
          <li key={one.from}>
            <span className="num nowrap">{one.days > 1 ? `${one.from} – ${one.to.slice(5)}` : one.from}</span> {one.name}
          </li>
        )}
      />
    </section>
  )
}

function WindowsCard({ windows, zone }: { windows: Blackout[]; zone: string }) {
  const { t } = useTranslation()
  const now = serverNow()
  return (
    <section className="card">
      <div className="card-head">
        <h2>{t('calendars.blackouts')}</h2>
        <span className="muted">{t('calendars.windows', { count: windows.length })}</span>
      </div>
      <Upcoming
        items={windows.toSorted((a, b) => Date.parse(a.from) - Date.parse(b.from))}
        isPast={(one) => Date.parse(one.to) <= now}
        render={(one) => (
          <li key={`${one.from}-${one.to}`}>
            <span className="num">
              {formatWall(one.from, zone)} – {formatWall(one.to, zone)}
            </span>{' '}
            <span className="muted small">{zone}</span> {one.name}
          </li>
        )}
      />
    </section>
  )
}

function Actions({ calendar, jobs }: { calendar: Calendar; jobs: { id: Id; name: string }[] | undefined }) {
  const { t } = useTranslation()
  const danger = useDanger()
  const navigate = useNavigate()
  const [importing, setImporting] = useState(false)
  const { name } = calendar
  const remove = () => {
    if (jobs && jobs.length > 0) {
      // The server refuses it too; here stands why, and where to go.
      modal.info({
        title: t('calendars.inUseTitle', { name }),
        okText: t('action.close'),
        content: (close) => (
          <>
            <p>{t('calendars.inUseHelp')}</p>
            <ul className="plain-list">
              {jobs.map((job) => (
                <li key={job.id}>
                  <a
                    href={`/jobs/${job.id}/edit`}
                    onClick={(event) => {
                      event.preventDefault()
                      close()
                      void navigate({ to: '/jobs/$jobId/edit', params: { jobId: job.id } })
                    }}
                  >
                    {job.name}
                  </a>
                </li>
              ))}
            </ul>
          </>
        ),
      })
      return
    }
    danger({
      title: t('calendars.deleteTitle', { name }),
      content: t('calendars.deleteHelp'),
      action: t('calendars.delete'),
      work: async () => {
        await calendarApi.deleteCalendar(calendar.id)
        await navigate({ to: '/calendars' })
        queryClient.removeQueries({ queryKey: ['calendar', calendar.id] })
      },
      done: t('calendars.deleted', { name }),
      after: refreshCalendars,
    })
  }
  return (
    <>
      <LinkButton to="/calendars/$calendarId/edit" params={{ calendarId: calendar.id }} icon={<EditOutlined />}>
        {t('action.edit')}
      </LinkButton>
      <ActionButton icon={<ImportOutlined />} onClick={() => setImporting(true)}>
        {t('calendars.import')}
      </ActionButton>
      <ActionButton danger icon={<DeleteOutlined />} onClick={remove}>
        {t('calendars.delete')}
      </ActionButton>
      {importing && <CalendarImport calendar={calendar} onClose={() => setImporting(false)} />}
    </>
  )
}
