// Writing a calendar. Days and windows are lines of text: they are typed,
// pasted and sorted; pickers put lines in.
import { useQuery } from '../api/useQuery'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { Form, Input, Select } from 'antd'
import { useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { calendarApi, calendarQueries, refreshCalendars } from '../api/calendars'
import { isApiError } from '../api/problem'
import { queryClient, readOnce } from '../api/queries'
import type { Calendar, CalendarSpec } from '../api/types'
import { DayLines, WindowLines } from '../components/CalendarLines'
import { complainAt } from '../components/complain'
import { EditPage, FormFoot } from '../components/EditPage'
import { useShowError } from '../components/hooks'
import { LinkButton } from '../components/LinkButton'
import { message } from '../components/notices'
import { Overwrite } from '../components/Overwrite'
import { Page } from '../components/Page'
import { useLeaveGuard } from '../components/useLeaveGuard'
import { calendarFieldsOf, calendarSpecOf, rezone, WEEKDAYS, type CalendarFields } from '../lib/calendarForm'
import { allZones } from '../lib/time'

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
  const navigate = useNavigate()
  const showError = useShowError()
  const [form] = Form.useForm<CalendarFields>()
  const [initial] = useState(() => calendarFieldsOf(stored))
  const [busy, setBusy] = useState(false)
  // Somebody else's version, when one came between.
  const [theirs, setTheirs] = useState<Calendar>()
  const saved = useRef(false)
  const dirty = () => !saved.current && JSON.stringify(form.getFieldsValue(true)) !== JSON.stringify({ ...initial })
  const zones = useMemo(() => allZones().map((zone) => ({ value: zone, label: zone })), [])

  useLeaveGuard(dirty)

  const write = (spec: CalendarSpec, version: number) => (stored ? calendarApi.updateCalendar(stored.id, version, spec) : calendarApi.createCalendar(spec))
  const save = async (version: number) => {
    const spec = calendarSpecOf(form.getFieldsValue(true) as CalendarFields)
    setBusy(true)
    try {
      const next = await write(spec, version)
      saved.current = true
      message.success(t('calendars.saved', { n: next.version, name: next.name }))
      queryClient.setQueryData(calendarQueries.calendar(next.id).queryKey, next)
      refreshCalendars()
      await navigate({ to: '/calendars/$calendarId', params: { calendarId: next.id } })
    } catch (err) {
      if (stored && isApiError(err, 'revision_mismatch')) setTheirs(await calendarApi.calendar(stored.id).catch(() => undefined))
      else if (!complainAt(form, err, ([field = '']) => [field])) showError(err)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Form
      form={form}
      layout="vertical"
      initialValues={initial}
      scrollToFirstError={{ focus: true }}
      onValuesChange={(changed: Partial<CalendarFields>, all) => {
        // The same windows, on the clocks of the new zone.
        if ('zone' in changed) form.setFieldsValue(rezone(all))
      }}
      onFinish={() => void save(stored?.version ?? 0)}
    >
      <div className="stack">
        {theirs && (
          <Overwrite
            title={t('calendars.conflictTitle')}
            help={t('calendars.conflictHelp', { n: theirs.version })}
            look={
              <a href={`/calendars/${theirs.id}`} target="_blank" rel="noreferrer">
                {t('calendars.conflictLook', { n: theirs.version })}
              </a>
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
            <Select showSearch allowClear options={zones} placeholder={t('calendars.zoneAny')} />
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
