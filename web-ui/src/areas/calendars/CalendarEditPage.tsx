// Writing a calendar. Days and windows are lines of text: they are typed,
// pasted and sorted; pickers put lines in.
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { Form, Input, Select } from 'antd'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { calendarApi, calendarQueries, refreshCalendars } from './calendars'
import { queryClient, readOnce } from '../../api/queries'
import type { Calendar } from '../../api/types'
import { DayLines, WindowLines } from './CalendarLines'
import { useClearable } from '../../ui/clearable'
import { EditPage, FormFoot } from '../../ui/EditPage'
import { LinkButton } from '../../ui/LinkButton'
import { Overwrite } from '../../ui/Overwrite'
import { Page } from '../../ui/Page'
import { useVersionedForm } from '../../ui/useVersionedForm'
import { calendarFieldsOf, calendarWriteOf, rezone, WEEKDAYS, type CalendarFields } from './calendarForm'
import { allZones } from '../../lib/time'

export function CalendarNewPage() {
  const { t } = useTranslation()
  return (
    <Page title={t('calendars.createTitle')} crumbs={<Link to="/calendars">{t('calendars.title')}</Link>}>
      <CalendarForm />
    </Page>
  )
}

export function CalendarEditPage() {
  const { t } = useTranslation()
  const { calendarId } = useParams({ from: '/app/calendars/$calendarId/edit' })
  return (
    <EditPage
      stored={useQuery(readOnce(calendarQueries.calendar(calendarId)))}
      title={({ name }) => t('calendars.editTitle', { name })}
      crumbs={({ name }) => (
        <>
          <Link to="/calendars">{t('calendars.title')}</Link> ›{' '}
          <Link to="/calendars/$calendarId" params={{ calendarId }}>
            {name}
          </Link>
        </>
      )}
    >
      {(calendar) => <CalendarForm key={calendar.version} stored={calendar} />}
    </EditPage>
  )
}

function CalendarForm({ stored }: { stored?: Calendar }) {
  const { t } = useTranslation()
  const clearable = useClearable()
  const navigate = useNavigate()
  const zones = useMemo(() => allZones().map((zone) => ({ value: zone, label: zone })), [])
  const { form, props, busy, theirs, save } = useVersionedForm<Calendar, CalendarFields>({
    stored,
    initial: () => calendarFieldsOf(stored),
    write: (fields, version) => (stored ? calendarApi.updateCalendar(stored.id, version, calendarWriteOf(fields, stored.labels)) : calendarApi.createCalendar(calendarWriteOf(fields))),
    read: calendarApi.calendar,
    said: ({ version, name }) => t('calendars.saved', { n: version, name }),
    place: ([field = '']) => [field],
    done: (saved) => {
      queryClient.setQueryData(calendarQueries.calendar(saved.id).queryKey, saved)
      refreshCalendars()
      void navigate({ to: '/calendars/$calendarId', params: { calendarId: saved.id } })
    },
  })
  return (
    <Form
      {...props}
      onValuesChange={(changed: Partial<CalendarFields>, all) => {
        // The same windows, on the clocks of the new zone.
        if ('zone' in changed) form.setFieldsValue(rezone(all))
      }}
    >
      <div className="stack">
        {theirs && (
          <Overwrite
            title={t('calendars.conflictTitle')}
            help={t('calendars.conflictHelp', { n: theirs.version })}
            look={
              <Link to="/calendars/$calendarId" params={{ calendarId: theirs.id }} target="_blank" rel="noreferrer">
                {t('calendars.conflictLook', { n: theirs.version })}
              </Link>
            }
            action={t('calendars.conflictOver')}
            busy={busy}
            onAction={() => void save(theirs.version)}
          />
        )}
        <section className="card form-fields">
          <Form.Item name="name" label={t('calendars.name')} rules={[{ required: true, whitespace: true, message: t('field.required') }]} extra={t('jobs.form.nameHelp')}>
            <Input maxLength={128} autoComplete="off" spellCheck={false} />
          </Form.Item>
          <Form.Item name="zone" label={t('calendars.zone')}>
            <Select showSearch allowClear={clearable} options={zones} placeholder={t('calendars.zoneAny')} />
          </Form.Item>
          <Form.Item name="windowZone" hidden>
            <Input />
          </Form.Item>
          <Form.Item name="weekend" label={t('calendars.weekend')} rules={[{ required: true, message: t('field.required') }]}>
            <Select mode="multiple" options={WEEKDAYS.map((day) => ({ value: day, label: t(`calendars.weekdays.${day}`) }))} />
          </Form.Item>
          <Form.Item className="wide" name="description" label={t('calendars.description')}>
            <Input.TextArea maxLength={2000} autoSize={{ minRows: 1, maxRows: 5 }} />
          </Form.Item>
        </section>
        <div className="grid-2">
          <DayLines name="holidays" rows={12} />
          <div className="stack">
            <DayLines name="makeUpDays" rows={4} />
            <WindowLines />
          </div>
        </div>
      </div>
      <FormFoot
        isNew={!stored}
        busy={busy}
        cancel={
          stored ? (
            <LinkButton to="/calendars/$calendarId" params={{ calendarId: stored.id }}>
              {t('action.cancel')}
            </LinkButton>
          ) : (
            <LinkButton to="/calendars">{t('action.cancel')}</LinkButton>
          )
        }
      >
        {stored && <span className="muted small">{t('calendars.saveHelp')}</span>}
      </FormFoot>
    </Form>
  )
}
