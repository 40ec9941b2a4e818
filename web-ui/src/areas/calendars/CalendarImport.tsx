// Days or windows out of an iCalendar file, pasted or chosen. The server reads
// it and refuses, with the line, what it does not understand whole.
import { UploadOutlined } from '@ant-design/icons'
import { Button, Checkbox, Form, Input, Select } from 'antd'
import { useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { calendarApi, calendarQueries, refreshCalendars } from './calendars'
import { isApiError } from '../../api/problem'
import { queryClient } from '../../api/queries'
import type { Calendar, ImportCalendar } from '../../api/types'
import { Dialog } from '../../ui/Dialog'
import { useErrorText } from '../../ui/hooks'
import { message } from '../../ui/notices'

type As = NonNullable<ImportCalendar['as']>

export default function CalendarImport({ calendar, onClose }: { calendar: Calendar; onClose: () => void }) {
  const { t } = useTranslation()
  const errorText = useErrorText()
  const [ical, setIcal] = useState('')
  const [as, setAs] = useState<As>('auto')
  const [replace, setReplace] = useState(false)
  const [busy, setBusy] = useState(false)
  const [fault, setFault] = useState('')
  const file = useRef<HTMLInputElement>(null)

  const submit = async () => {
    setBusy(true)
    setFault('')
    try {
      const next = await calendarApi.importCalendar(calendar.id, calendar.version, { ical, as, replace })
      queryClient.setQueryData(calendarQueries.calendar(calendar.id).queryKey, next)
      refreshCalendars()
      message.success(t('calendars.imported', { n: next.version, ...next.status }))
      onClose()
    } catch (err) {
      const item = isApiError(err) ? err.items[0] : undefined
      setFault(item?.message ?? errorText(err))
      setBusy(false)
    }
  }
  return (
    <Dialog
      title={t('calendars.importTitle', { name: calendar.name })}
      okText={t('calendars.import')}
      cancelText={t('action.cancel')}
      okButtonProps={{ disabled: ical.trim() === '', loading: busy }}
      onOk={() => void submit()}
      onCancel={onClose}
    >
      <Form layout="vertical" component="div">
        <Form.Item>
          <Button icon={<UploadOutlined />} onClick={() => file.current?.click()}>
            {t('calendars.importFile')}
          </Button>
          <input
            ref={file}
            type="file"
            accept=".ics,text/calendar"
            hidden
            onChange={(event) => {
              void event.target.files?.[0]?.text().then(setIcal)
              // The same file again is a change too.
              event.target.value = ''
            }}
          />
        </Form.Item>
        <Form.Item
          label={t('calendars.importText')}
          htmlFor="import-text"
          validateStatus={fault ? 'error' : undefined}
          help={fault ? <span role="alert">{fault}</span> : undefined}
          extra={fault ? undefined : t('calendars.importTextHelp')}
        >
          <Input.TextArea id="import-text" className="mono" rows={8} value={ical} onChange={(event) => setIcal(event.target.value)} placeholder="BEGIN:VCALENDAR" spellCheck={false} />
        </Form.Item>
        <Form.Item label={t('calendars.importAs')} htmlFor="import-as">
          <Select
            id="import-as"
            value={as}
            onChange={setAs}
            options={(['auto', 'holidays', 'make_up_days', 'blackouts'] as const).map((value) => ({ value, label: t(`calendars.as_${value}`) }))}
          />
        </Form.Item>
        <Checkbox checked={replace} onChange={(event) => setReplace(event.target.checked)}>
          {t('calendars.importReplace')}
        </Checkbox>
      </Form>
    </Dialog>
  )
}
