import { Checkbox, Form, Input, Select } from 'antd'
import { useTranslation } from 'react-i18next'
import type { AlertQuietHours } from '../../api/types'
import { allZones, localZone } from '../../lib/time'
import { useClearable } from '../../ui/clearable'

const DAYS = { monday: 'MON', tuesday: 'TUE', wednesday: 'WED', thursday: 'THU', friday: 'FRI', saturday: 'SAT', sunday: 'SUN' } as const
const WEEK = Object.keys(DAYS) as (keyof typeof DAYS)[]

export interface QuietFields {
  quiet: boolean
  quietHours: AlertQuietHours
}

/** A daily time in which only critical incidents are told. */
export function QuietHoursFields({ help }: { help: string }) {
  const { t } = useTranslation()
  const clearable = useClearable()
  const quiet: boolean = Form.useWatch('quiet') ?? false
  const clock = { required: true, message: t('field.required') }
  return (
    <>
      <Form.Item name="quiet" valuePropName="checked" extra={help}>
        <Checkbox>{t('alerts.quiet.hours')}</Checkbox>
      </Form.Item>
      {quiet && (
        <div className="form-fields">
          <Form.Item name={['quietHours', 'from']} label={t('alerts.quiet.from')} rules={[clock]}>
            <Input type="time" />
          </Form.Item>
          <Form.Item name={['quietHours', 'to']} label={t('alerts.quiet.to')} rules={[clock]}>
            <Input type="time" />
          </Form.Item>
          <Form.Item name={['quietHours', 'zone']} label={t('alerts.quiet.zone')} rules={[clock]}>
            <Select showSearch options={allZones().map((value) => ({ value, label: value }))} />
          </Form.Item>
          <Form.Item name={['quietHours', 'days']} label={t('alerts.quiet.days')} extra={t('alerts.quiet.daysHelp')}>
            <Select mode="multiple" allowClear={clearable} placeholder={t('alerts.quiet.everyDay')} options={WEEK.map((value) => ({ value, label: t(`calendars.weekdays.${DAYS[value]}`) }))} />
          </Form.Item>
        </div>
      )}
    </>
  )
}

export function quietFieldsOf(stored: AlertQuietHours | null | undefined): QuietFields {
  return { quiet: Boolean(stored), quietHours: stored ?? { zone: localZone, from: '22:00', to: '07:00' } }
}

export function quietHoursOf({ quiet, quietHours }: QuietFields): { quietHours?: AlertQuietHours } {
  if (!quiet) return {}
  const { days, ...rest } = quietHours
  return { quietHours: { ...rest, ...(days?.length ? { days } : {}) } }
}

export function QuietText({ hours }: { hours: AlertQuietHours }) {
  const { t } = useTranslation()
  return (
    <span>
      <span className="num nowrap">
        {hours.from}–{hours.to}
      </span>{' '}
      {hours.zone}
      {hours.days?.length ? ` · ${WEEK.filter((day) => hours.days?.includes(day)).map((day) => t(`calendars.weekdays.${DAYS[day]}`)).join(', ')}` : ''}
    </span>
  )
}
